//! Our kernels on CUDA: compiled by NVRTC when they are first needed, one module for each shape they are made for.
//!
//! Each operation has a file with safe functions that take and return Candle's tensors. They are the only places that
//! launch kernels, which is unsafe: a kernel trusts its arguments. Every tensor goes through [`checked`], which compares its
//! device, type and shape with those that the kernel expects; what remains to be argued at a launch is that the
//! list of arguments is the kernel's. Pointers are taken while the tensors are alive, and everything runs on Candle's one
//! stream, so that memory that is freed is used again only after the kernels that read it.

#![expect(
    unsafe_code,
    reason = "kernels are launched with raw arguments; each launch says why its arguments are sound"
)]

pub(super) mod attention;
pub(super) mod bias_activation;
pub(super) mod gather;
pub(super) mod layer_norm;
pub(super) mod see;
pub(super) mod update;

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use candle_core::backend::BackendDevice as _;
use candle_core::cuda_backend::cudarc::driver::{DevicePtr as _, LaunchConfig, PushKernelArg as _, sys};
use candle_core::cuda_backend::cudarc::nvrtc::{CompileOptions, compile_ptx_with_opts};
use candle_core::cuda_backend::{CudaStorage, CudaStorageSlice};
use candle_core::op::BackpropOp;
use candle_core::{CudaDevice, DType, Error, Result, Storage, Tensor};
use half::bf16;

const ELEMENTWISE: &str = include_str!("elementwise.cu");
const ATTENTION: &str = include_str!("attention.cu");

/// The most shared memory that a block has without asking.
const PLAIN_SHARED: u32 = 48 * 1024;

/// A compiled source on a device.
struct Module {
    device: CudaDevice,
    name: String,
    ptx: String,
}

/// How a kernel is laid out.
struct Grid {
    /// Blocks along x and y.
    blocks: (u32, u32),
    /// Threads of a block along x and y.
    threads: (u32, u32),
    /// Bytes of shared memory that are asked for at launch.
    shared: u32,
}

/// An argument of a kernel.
#[derive(Clone, Copy)]
enum Arg {
    /// Memory of the device, from [`checked`]; zero for none.
    Pointer(u64),
    /// `int`
    Int(i32),
    /// `long long`
    Long(i64),
    /// `float`
    Float(f32),
}

impl Arg {
    /// The pointer that a kernel takes for an absent tensor.
    const NONE: Arg = Arg::Pointer(0);

    /// A count as an `int`.
    fn count(value: usize) -> Result<Arg> {
        let small = i32::try_from(value)
            .map_err(|_| Error::Msg(format!("{value} rows or columns are too many for a kernel")))?;
        Ok(Arg::Int(small))
    }
}

/// The kernels of `elementwise.cu` for an activation type and, where it matters, a row width.
fn elementwise(device: &CudaDevice, dtype: DType, width: usize) -> Result<Module> {
    let mut options = vec![format!("-DWIDTH={width}")];
    if dtype == DType::BF16 {
        options.push("-DBF16".into());
    }
    module(device, "elementwise", ELEMENTWISE, options)
}

/// The kernels of `attention.cu` for 16·`tiles` tokens.
fn attention_module(device: &CudaDevice, tiles: usize, head: usize, causal: bool) -> Result<Module> {
    let options = vec![format!("-DTILES={tiles}"), format!("-DHEAD={head}"), format!("-DCAUSAL={}", u8::from(causal))];
    module(device, "attention", ATTENTION, options)
}

fn module(device: &CudaDevice, source: &str, text: &str, mut options: Vec<String>) -> Result<Module> {
    static COMPILED: Mutex<BTreeMap<String, String>> = Mutex::new(BTreeMap::new());
    let (major, minor) = device.cuda_stream().context().compute_capability().map_err(driver)?;
    options.push(format!("--gpu-architecture=compute_{major}{minor}"));
    let name = format!("refactor_vla {source} {}", options.join(" "));
    let mut compiled = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
    let ptx = match compiled.get(&name) {
        Some(ptx) => ptx.clone(),
        None => {
            let options = CompileOptions { options, name: Some(format!("{source}.cu")), ..CompileOptions::default() };
            let ptx = compile_ptx_with_opts(text, options)
                .map_err(|error| Error::Msg(format!("NVRTC does not compile {source}.cu: {error:?}")))?
                .to_src();
            compiled.insert(name.clone(), ptx.clone());
            ptx
        }
    };
    Ok(Module { device: device.clone(), name, ptx })
}

impl Module {
    /// How many multiprocessors the device has.
    fn processors(&self) -> u32 {
        let attribute = sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT;
        self.device.cuda_stream().context().attribute(attribute).map_or(64, |count| count.max(1) as u32)
    }

    /// Runs a kernel on the device's stream.
    ///
    /// # Safety
    /// The arguments are as many as the kernel's source has, in the same order and of the same types. Each pointer is to a
    /// tensor of this device that has at least the numbers that the kernel reads or writes for this grid, in the type that
    /// it takes them for, or is zero where the kernel allows that. Nothing else writes to these tensors, and tensors that
    /// the kernel writes share memory with no tensor that it reads, except where the kernel reads each number before it
    /// writes it.
    unsafe fn launch(&self, kernel: &str, grid: Grid, args: &[Arg]) -> Result<()> {
        let function = self.device.get_or_load_custom_func(kernel, &self.name, &self.ptx)?;
        if grid.shared > PLAIN_SHARED {
            let attribute = sys::CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
            function.set_attribute(attribute, grid.shared as i32).map_err(driver)?;
        }
        let mut builder = function.builder();
        for arg in args {
            match arg {
                Arg::Pointer(value) => builder.arg(value),
                Arg::Int(value) => builder.arg(value),
                Arg::Long(value) => builder.arg(value),
                Arg::Float(value) => builder.arg(value),
            };
        }
        let config = LaunchConfig {
            grid_dim: (grid.blocks.0, grid.blocks.1, 1),
            block_dim: (grid.threads.0, grid.threads.1, 1),
            shared_mem_bytes: grid.shared,
        };
        // SAFETY: the caller vouches for the arguments, which is this function's own condition.
        unsafe { builder.launch(config) }.map_err(driver)?;
        Ok(())
    }
}

/// The most bytes of shared memory that a block of a device can have.
fn most_shared(device: &CudaDevice) -> u32 {
    let attribute = sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN;
    device.cuda_stream().context().attribute(attribute).map_or(PLAIN_SHARED, |bytes| bytes.max(0) as u32)
}

/// A tensor whose numbers are not set yet. They may be anything until a kernel writes them.
fn empty(device: &CudaDevice, dtype: DType, shape: &[usize]) -> Result<Tensor> {
    let count = shape.iter().product();
    // SAFETY: any bits are numbers of these types, and every kernel here writes all numbers of the tensors that it is given
    // to fill before anything reads them.
    let slice = match dtype {
        DType::F32 => CudaStorageSlice::F32(unsafe { device.alloc::<f32>(count) }?),
        DType::BF16 => CudaStorageSlice::BF16(unsafe { device.alloc::<bf16>(count) }?),
        other => return Err(Error::Msg(format!("kernels make f32 and bf16, not {other:?}"))),
    };
    let storage = Storage::Cuda(CudaStorage { slice, device: device.clone() });
    Ok(Tensor::from_storage(storage, shape, BackpropOp::none(), false))
}

/// A tensor as an argument, if it is what a kernel expects: contiguous, on this device, of this type and shape.
fn checked(device: &CudaDevice, tensor: &Tensor, dtype: DType, shape: &[usize]) -> Result<Arg> {
    if tensor.dtype() != dtype || tensor.dims() != shape {
        let found = (tensor.dtype(), tensor.dims());
        return Err(Error::Msg(format!("a kernel was given {found:?}, it takes {:?}", (dtype, shape))));
    }
    Ok(Arg::Pointer(address(device, tensor)?))
}

/// The same for kernels that load and store 16 bytes at once.
fn aligned(device: &CudaDevice, tensor: &Tensor, dtype: DType, shape: &[usize]) -> Result<Arg> {
    let arg = checked(device, tensor, dtype, shape)?;
    match arg {
        Arg::Pointer(address) if !address.is_multiple_of(16) => {
            Err(Error::Msg(format!("a kernel was given {shape:?} at an address that is not a multiple of 16 bytes")))
        }
        arg => Ok(arg),
    }
}

/// Numbers of a type in the 16 bytes that a thread loads at once.
fn vector(dtype: DType) -> usize {
    16 / dtype.size_in_bytes()
}

/// The address of a contiguous tensor of this device.
fn address(device: &CudaDevice, tensor: &Tensor) -> Result<u64> {
    let (storage, layout) = tensor.storage_and_layout();
    let Storage::Cuda(storage) = &*storage else {
        return Err(Error::Msg("a kernel was given a tensor that is not on the GPU".into()));
    };
    if !storage.device.same_device(device) {
        return Err(Error::Msg("a kernel was given a tensor of another GPU".into()));
    }
    if !layout.is_contiguous() {
        return Err(Error::Msg(format!("a kernel was given a tensor with gaps: {:?}", layout.shape())));
    }
    let stream = storage.device.cuda_stream();
    let base = match &storage.slice {
        CudaStorageSlice::F32(slice) => slice.device_ptr(&stream).0,
        CudaStorageSlice::BF16(slice) => slice.device_ptr(&stream).0,
        CudaStorageSlice::I64(slice) => slice.device_ptr(&stream).0,
        CudaStorageSlice::U32(slice) => slice.device_ptr(&stream).0,
        CudaStorageSlice::U8(slice) => slice.device_ptr(&stream).0,
        _ => return Err(Error::Msg(format!("kernels take f32, bf16, i64, u32 and u8, not {:?}", tensor.dtype()))),
    };
    Ok(base + (layout.start_offset() * tensor.dtype().size_in_bytes()) as u64)
}

/// Σ over the second dimension: `[groups, parts, columns]` to `[groups, columns]`.
fn merge_partial(module: &Module, partial: &Tensor) -> Result<Tensor> {
    let device = &module.device;
    let (groups, parts, columns) = partial.dims3()?;
    let out = empty(device, DType::F32, &[groups, columns])?;
    let args = [
        checked(device, partial, DType::F32, &[groups, parts, columns])?,
        checked(device, &out, DType::F32, &[groups, columns])?,
        Arg::count(parts)?,
        Arg::count(columns)?,
    ];
    let grid = Grid { blocks: ((columns as u32).div_ceil(32), groups as u32), threads: (32, 8), shared: 0 };
    // SAFETY: `merge_partial(const float*, float*, int, int)`; a block of 32×8 threads takes 32 columns of one group, and
    // columns beyond the last are skipped.
    unsafe { module.launch("merge_partial", grid, &args) }?;
    Ok(out)
}

/// An error of the driver as one of Candle's.
fn driver(error: impl std::fmt::Display) -> Error {
    Error::Msg(format!("CUDA: {error}"))
}
