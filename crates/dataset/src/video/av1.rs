//! AV1 pictures, decoded by rav1d: dav1d in Rust, which has dav1d's C interface only.
//!
//! One thread and no delay: a sample goes in, its picture comes out. Runs of pictures are decoded in parallel outside.
#![expect(unsafe_code, reason = "rav1d publishes no interface but dav1d's, which takes raw pointers")]

use std::ffi::c_uint;
use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::slice;

use rav1d::include::dav1d::data::Dav1dData;
use rav1d::include::dav1d::dav1d::{Dav1dContext, Dav1dLogger, Dav1dSettings};
use rav1d::include::dav1d::headers::{
    DAV1D_PIXEL_LAYOUT_I400, DAV1D_PIXEL_LAYOUT_I420, DAV1D_PIXEL_LAYOUT_I422, DAV1D_PIXEL_LAYOUT_I444,
};
use rav1d::include::dav1d::picture::Dav1dPicture;
use rav1d::src::lib::{
    dav1d_close, dav1d_data_create, dav1d_data_unref, dav1d_default_settings, dav1d_flush, dav1d_get_picture,
    dav1d_open, dav1d_picture_unref, dav1d_send_data,
};

use crate::video::color::{Chroma, Matrix, Planes};

/// What dav1d answers if it wants more data, or has no picture yet: the negative of `EAGAIN`.
const AGAIN: i32 = if cfg!(any(target_os = "macos", target_os = "ios", target_os = "freebsd")) { -35 } else { -11 };

/// A decoder with what it remembers of the pictures before.
pub(crate) struct Av1 {
    context: Option<Dav1dContext>,
    limit: usize,
}

// SAFETY: the context is an `Arc` of a structure that rav1d itself shares between its threads, and is used through
// `&mut self` only.
unsafe impl Send for Av1 {}

impl Av1 {
    /// A decoder that refuses pictures of more pixels than the limit.
    pub(crate) fn open(limit: usize) -> Result<Av1, String> {
        let mut settings = MaybeUninit::<Dav1dSettings>::uninit();
        // SAFETY: the pointer is valid for a write, after which the settings are initialised.
        let mut settings = unsafe {
            dav1d_default_settings(NonNull::from(&mut settings).cast());
            settings.assume_init()
        };
        settings.n_threads = 1;
        settings.max_frame_delay = 1;
        settings.all_layers = 0;
        settings.frame_size_limit = c_uint::try_from(limit).unwrap_or(c_uint::MAX);
        // SAFETY: without a callback there is nothing that could be called; what is wrong is told by error codes.
        settings.logger = unsafe { Dav1dLogger::new(None, None) };
        let mut context = None;
        // SAFETY: both pointers are to values of this function; the settings are read, the context is written.
        let result = unsafe { dav1d_open(Some(NonNull::from(&mut context)), Some(NonNull::from(&mut settings))) };
        match context {
            Some(context) if result.0 == 0 => Ok(Av1 { context: Some(context), limit }),
            _ => Err(format!("the decoder does not start (code {})", result.0)),
        }
    }

    /// The most pixels that a picture may have.
    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    /// Forgets the pictures before.
    pub(crate) fn flush(&mut self) {
        if let Some(context) = self.context {
            // SAFETY: the context is open until this is dropped.
            unsafe { dav1d_flush(context) };
        }
    }

    /// Decodes one sample, which has to be one picture.
    pub(crate) fn decode(&mut self, parts: [&[u8]; 2]) -> Result<Picture, String> {
        self.send(parts)?;
        let picture = self.receive()?.ok_or("it holds no picture")?;
        match self.receive()? {
            None => Ok(picture),
            Some(_) => Err("it holds two pictures".to_string()),
        }
    }

    fn send(&mut self, parts: [&[u8]; 2]) -> Result<(), String> {
        let length = parts[0].len() + parts[1].len();
        if length == 0 {
            return Err("it is empty".to_string());
        }
        let mut data = Dav1dData::default();
        // SAFETY: the pointer is to a value of this function, which is written.
        let buffer = unsafe { dav1d_data_create(Some(NonNull::from(&mut data)), length) };
        let buffer = NonNull::new(buffer).ok_or("there is not enough memory")?;
        // SAFETY: the buffer was made with this length, zeroed, and nobody else has it yet.
        let buffer = unsafe { slice::from_raw_parts_mut(buffer.as_ptr(), length) };
        buffer[..parts[0].len()].copy_from_slice(parts[0]);
        buffer[parts[0].len()..].copy_from_slice(parts[1]);
        // SAFETY: the context is open; the data are initialised and taken over, or left for the call below.
        let result = unsafe { dav1d_send_data(self.context, Some(NonNull::from(&mut data))) };
        // SAFETY: the data are initialised, empty if they were taken over.
        unsafe { dav1d_data_unref(Some(NonNull::from(&mut data))) };
        if result.0 == 0 { Ok(()) } else { Err(refused(result.0)) }
    }

    fn receive(&mut self) -> Result<Option<Picture>, String> {
        let mut picture = Picture(Dav1dPicture::default());
        // SAFETY: the context is open; the picture is initialised, holds nothing, and is written.
        let result = unsafe { dav1d_get_picture(self.context, Some(NonNull::from(&mut picture.0))) };
        match result.0 {
            0 => Ok(Some(picture)),
            AGAIN => Ok(None),
            code => Err(refused(code)),
        }
    }
}

impl Drop for Av1 {
    fn drop(&mut self) {
        // SAFETY: the context is open, and is closed here only, which leaves `None` behind.
        unsafe { dav1d_close(Some(NonNull::from(&mut self.context))) };
    }
}

fn refused(code: i32) -> String {
    match -code {
        34 => "it is larger than the file says".to_string(),
        92 => "only AV1 with 8 bits per sample is read".to_string(),
        _ => format!("its AV1 data are damaged (code {code})"),
    }
}

/// A decoded picture; the decoder gets its memory back when it is dropped.
pub(crate) struct Picture(Dav1dPicture);

impl Drop for Picture {
    fn drop(&mut self) {
        // SAFETY: the picture is initialised, and is what the decoder wrote or the default.
        unsafe { dav1d_picture_unref(Some(NonNull::from(&mut self.0))) };
    }
}

impl Picture {
    /// What is in it.
    pub(crate) fn planes(&self) -> Result<Planes<'_>, String> {
        let Dav1dPicture { seq_hdr: Some(header), data, stride, p, .. } = &self.0 else {
            return Err("it holds no picture".to_string());
        };
        if p.bpc != 8 {
            return Err(format!("it has {} bits per sample, 8 are read", p.bpc));
        }
        // SAFETY: the header lives as long as the picture, which holds a reference to it, and is not written any more.
        let (matrix, range) = unsafe { (header.as_ref().mtrx, header.as_ref().color_range) };
        let chroma = match p.layout {
            DAV1D_PIXEL_LAYOUT_I400 => Chroma::None,
            DAV1D_PIXEL_LAYOUT_I420 => Chroma::Quarter,
            DAV1D_PIXEL_LAYOUT_I422 => Chroma::Half,
            DAV1D_PIXEL_LAYOUT_I444 => Chroma::Full,
            other => return Err(format!("its layout {other} is unknown")),
        };
        let (Ok(width), Ok(height)) = (usize::try_from(p.w), usize::try_from(p.h)) else {
            return Err("it has no size".to_string());
        };
        let (Ok(luma_stride), Ok(chroma_stride)) = (usize::try_from(stride[0]), usize::try_from(stride[1])) else {
            return Err("its rows are upside down".to_string());
        };
        let matrix = Matrix::of(matrix).ok_or_else(|| format!("its colours are coded by matrix {matrix}"))?;
        let mut picture = Planes {
            width,
            height,
            chroma,
            planes: [&[]; 3],
            strides: [luma_stride, chroma_stride],
            matrix,
            full_range: range != 0,
        };
        let rows = [height, picture.chroma_size().1, picture.chroma_size().1];
        for (plane, (pointer, rows)) in data.iter().zip(rows).enumerate() {
            let Some(pointer) = pointer.filter(|_| rows > 0) else { continue };
            let length = rows * picture.strides[plane.min(1)];
            // SAFETY: rav1d allocates each plane with at least this many rows of this stride, initialised; they live as
            // long as the picture. References of later pictures to them only read.
            picture.planes[plane] = unsafe { slice::from_raw_parts(pointer.cast().as_ptr(), length) };
        }
        if picture.whole() { Ok(picture) } else { Err("its planes are incomplete".to_string()) }
    }
}

/// Whether a sample begins with its sequence header, without which no decoder can start. Keyframes of mp4 files need not
/// repeat the one in the head of the file.
pub(crate) fn has_sequence_header(mut sample: &[u8]) -> bool {
    // Headers come first; a handful of units is enough to look at.
    for _ in 0..8 {
        let Some(&head) = sample.first() else { return false };
        let (kind, extended, sized) = ((head >> 3) & 15, head & 4 != 0, head & 2 != 0);
        if kind == 1 {
            return true;
        }
        let start = 1 + usize::from(extended);
        let (true, Some((length, used))) = (sized, sample.get(start..).and_then(leb128)) else { return false };
        let Some(rest) = start.checked_add(used).and_then(|at| at.checked_add(length)).and_then(|at| sample.get(at..))
        else {
            return false;
        };
        sample = rest;
    }
    false
}

fn leb128(bytes: &[u8]) -> Option<(usize, usize)> {
    let mut value = 0u64;
    for (at, &byte) in bytes.iter().take(8).enumerate() {
        value |= u64::from(byte & 127) << (7 * at);
        if byte & 128 == 0 {
            return Some((usize::try_from(value).ok()?, at + 1));
        }
    }
    None
}
