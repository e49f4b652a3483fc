// Layer normalisation, bias with activation, column sums, sums of rows, images and AdamW: each one pass over memory.
//
// Compiled by NVRTC for one activation type (-DBF16 or not) and one row width (-DWIDTH=n). No header is needed, so no CUDA
// toolkit is needed where the program runs. Sums are f32; partial sums are merged in a fixed order, so results repeat.

typedef unsigned short u16;
typedef unsigned int u32;

#ifdef BF16
typedef u16 scalar;
#define FULL 8
__device__ __forceinline__ float widen(scalar value) { return __uint_as_float(((u32)value) << 16); }
__device__ __forceinline__ scalar narrow(float value) {
    scalar result;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(result) : "f"(value));
    return result;
}
#else
typedef float scalar;
#define FULL 4
__device__ __forceinline__ float widen(scalar value) { return value; }
__device__ __forceinline__ scalar narrow(float value) { return value; }
#endif

#ifndef WIDTH
#define WIDTH 1024
#endif

// A lane takes vectors of 16 bytes where the width allows it, single numbers where it does not.
#if WIDTH % (32 * FULL) == 0
#define LANES_TAKE FULL
#else
#define LANES_TAKE 1
#endif
#define STEPS ((WIDTH + 32 * LANES_TAKE - 1) / (32 * LANES_TAKE))
#define WARPS 4

template <int COUNT> struct alignas(COUNT * sizeof(scalar)) Pack {
    scalar values[COUNT];
};

__device__ __forceinline__ float warp_sum(float value) {
#pragma unroll
    for (int offset = 16; offset > 0; offset >>= 1) value += __shfl_xor_sync(0xffffffffu, value, offset);
    return value;
}

// The part of a row that a lane holds, in f32.
struct Row {
    float values[STEPS][LANES_TAKE];

    __device__ __forceinline__ void load(const scalar *row, int lane) {
#pragma unroll
        for (int step = 0; step < STEPS; step++) {
            const int column = (step * 32 + lane) * LANES_TAKE;
            if (WIDTH % (32 * LANES_TAKE) == 0 || column < WIDTH) {
                const Pack<LANES_TAKE> pack = *(const Pack<LANES_TAKE> *)(row + column);
#pragma unroll
                for (int at = 0; at < LANES_TAKE; at++) values[step][at] = widen(pack.values[at]);
            } else {
#pragma unroll
                for (int at = 0; at < LANES_TAKE; at++) values[step][at] = 0.f;
            }
        }
    }

    __device__ __forceinline__ void store(scalar *row, int lane) const {
#pragma unroll
        for (int step = 0; step < STEPS; step++) {
            const int column = (step * 32 + lane) * LANES_TAKE;
            if (WIDTH % (32 * LANES_TAKE) == 0 || column < WIDTH) {
                Pack<LANES_TAKE> pack;
#pragma unroll
                for (int at = 0; at < LANES_TAKE; at++) pack.values[at] = narrow(values[step][at]);
                *(Pack<LANES_TAKE> *)(row + column) = pack;
            }
        }
    }
};

// A lane's column for one of its numbers, and whether the row reaches it.
#define FOR_EACH_COLUMN                                                                                                                    \
    _Pragma("unroll") for (int step = 0; step < STEPS; step++) _Pragma("unroll") for (int at = 0; at < LANES_TAKE; at++)                    \
        if (const int column = (step * 32 + lane) * LANES_TAKE + at; WIDTH % (32 * LANES_TAKE) == 0 || column < WIDTH)

// sum = x + added + added_bias (if there is something to add), y = (sum − mean)·rstd·weight + bias. One warp per row.
extern "C" __global__ void __launch_bounds__(32 * WARPS)
    layer_norm_forward(const scalar *x, const scalar *added, const float *added_bias, const float *weight, const float *bias,
                       scalar *sum, scalar *y, float *means, float *rstds, int rows, float epsilon) {
    const int row = blockIdx.x * WARPS + threadIdx.y, lane = threadIdx.x;
    if (row >= rows) return;
    const long long start = (long long)row * WIDTH;
    Row values;
    values.load(x + start, lane);
    if (added) {
        Row more;
        more.load(added + start, lane);
        // Rounded as it is stored, so that the backward pass sees the same numbers.
        FOR_EACH_COLUMN values.values[step][at] =
            widen(narrow(values.values[step][at] + more.values[step][at] + added_bias[column]));
        values.store(sum + start, lane);
    }
    float total = 0.f;
    FOR_EACH_COLUMN total += values.values[step][at];
    const float mean = warp_sum(total) / WIDTH;
    float squares = 0.f;
    FOR_EACH_COLUMN {
        const float centred = values.values[step][at] - mean;
        squares += centred * centred;
    }
    const float rstd = rsqrtf(warp_sum(squares) / WIDTH + epsilon);
    FOR_EACH_COLUMN values.values[step][at] = (values.values[step][at] - mean) * rstd * weight[column] + bias[column];
    values.store(y + start, lane);
    if (lane == 0) {
        means[row] = mean;
        rstds[row] = rstd;
    }
}

// dx = rstd·(dy·w − mean(dy·w) − x̂·mean(dy·w·x̂)) + residual; partial sums over rows of dy·x̂, dy and dx for each block.
extern "C" __global__ void __launch_bounds__(32 * WARPS)
    layer_norm_backward(const scalar *x, const float *means, const float *rstds, const float *weight, const scalar *dy,
                        const scalar *residual, scalar *dx, float *partial, int rows) {
    const int lane = threadIdx.x;
    Row sums[3];
#pragma unroll
    for (int which = 0; which < 3; which++)
#pragma unroll
        for (int step = 0; step < STEPS; step++)
#pragma unroll
            for (int at = 0; at < LANES_TAKE; at++) sums[which].values[step][at] = 0.f;
    for (int row = blockIdx.x * WARPS + threadIdx.y; row < rows; row += gridDim.x * WARPS) {
        const long long start = (long long)row * WIDTH;
        Row normal, gradient, rest;
        normal.load(x + start, lane);
        gradient.load(dy + start, lane);
        if (residual) rest.load(residual + start, lane);
        const float mean = means[row], rstd = rstds[row];
        float scaled = 0.f, projected = 0.f;
        FOR_EACH_COLUMN {
            const float hat = (normal.values[step][at] - mean) * rstd, raw = gradient.values[step][at];
            sums[0].values[step][at] += raw * hat;
            sums[1].values[step][at] += raw;
            normal.values[step][at] = hat;
            gradient.values[step][at] = raw * weight[column];
            scaled += gradient.values[step][at];
            projected += gradient.values[step][at] * hat;
        }
        scaled = warp_sum(scaled) / WIDTH;
        projected = warp_sum(projected) / WIDTH;
        FOR_EACH_COLUMN {
            float value = rstd * (gradient.values[step][at] - scaled - normal.values[step][at] * projected);
            if (residual) value += rest.values[step][at];
            sums[2].values[step][at] += value;
            gradient.values[step][at] = value;
        }
        gradient.store(dx + start, lane);
    }
    __shared__ float gathered[WARPS][WIDTH];
#pragma unroll
    for (int which = 0; which < 3; which++) {
        FOR_EACH_COLUMN gathered[threadIdx.y][column] = sums[which].values[step][at];
        __syncthreads();
        for (int column = threadIdx.y * 32 + lane; column < WIDTH; column += 32 * WARPS) {
            float total = 0.f;
#pragma unroll
            for (int warp = 0; warp < WARPS; warp++) total += gathered[warp][column];
            partial[((long long)which * gridDim.x + blockIdx.x) * WIDTH + column] = total;
        }
        __syncthreads();
    }
}

// out[group, column] = Σ_part partial[group, part, column].
extern "C" __global__ void merge_partial(const float *partial, float *out, int parts, int columns) {
    const int column = blockIdx.x * 32 + threadIdx.x;
    const float *mine = partial + (long long)blockIdx.y * parts * columns;
    float total = 0.f;
    if (column < columns)
        for (int part = threadIdx.y; part < parts; part += 8) total += mine[(long long)part * columns + column];
    __shared__ float gathered[8][33];
    gathered[threadIdx.y][threadIdx.x] = total;
    __syncthreads();
    if (threadIdx.y == 0 && column < columns) {
        total = 0.f;
#pragma unroll
        for (int at = 0; at < 8; at++) total += gathered[at][threadIdx.x];
        out[(long long)blockIdx.y * columns + column] = total;
    }
}

// Activations: 0 none, 1 GELU in its tanh form, 2 GELU with erf.
__device__ __forceinline__ float tanh_of(float value) { return 1.f - __fdividef(2.f, __expf(2.f * value) + 1.f); }

__device__ __forceinline__ float activate(float value, int kind) {
    if (kind == 1) return 0.5f * value * (1.f + tanh_of(0.7978845608f * (value + 0.044715f * value * value * value)));
    if (kind == 2) return 0.5f * value * (1.f + erff(value * 0.7071067812f));
    return value;
}

__device__ __forceinline__ float slope(float value, int kind) {
    if (kind == 1) {
        const float square = value * value;
        const float bend = tanh_of(0.7978845608f * (value + 0.044715f * value * square));
        return 0.5f * (1.f + bend) + 0.5f * value * (1.f - bend * bend) * 0.7978845608f * (1.f + 0.134145f * square);
    }
    if (kind == 2) return 0.5f * (1.f + erff(value * 0.7071067812f)) + value * 0.3989422804f * __expf(-0.5f * value * value);
    return 1.f;
}

// y = activation(x + bias). `columns` is a multiple of FULL.
extern "C" __global__ void bias_activation_forward(const scalar *x, const float *bias, scalar *y, long long packs, int columns, int kind) {
    const long long at = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= packs) return;
    const int column = (int)((at * FULL) % columns);
    Pack<FULL> pack = ((const Pack<FULL> *)x)[at];
#pragma unroll
    for (int which = 0; which < FULL; which++)
        pack.values[which] = narrow(activate(widen(pack.values[which]) + bias[column + which], kind));
    ((Pack<FULL> *)y)[at] = pack;
}

#define CHUNK 64

// dx = dy·activation'(x + bias), and for each chunk of rows the sums of dx over its rows. Without x it sums dy alone.
extern "C" __global__ void bias_activation_backward(const scalar *x, const float *bias, const scalar *dy, scalar *dx, float *partial, int rows,
                                                    int columns, int kind) {
    const int column = (blockIdx.x * 32 + threadIdx.x) * FULL;
    float sums[FULL] = {0.f};
    if (column < columns) {
        float shift[FULL];
#pragma unroll
        for (int at = 0; at < FULL; at++) shift[at] = x ? bias[column + at] : 0.f;
        const int end = min(rows, (int)(blockIdx.y + 1) * CHUNK);
#pragma unroll 4
        for (int row = blockIdx.y * CHUNK + threadIdx.y; row < end; row += 8) {
            const long long start = (long long)row * columns + column;
            Pack<FULL> gradient = *(const Pack<FULL> *)(dy + start);
            if (x) {
                const Pack<FULL> value = *(const Pack<FULL> *)(x + start);
#pragma unroll
                for (int at = 0; at < FULL; at++) {
                    const float found = widen(gradient.values[at]) * slope(widen(value.values[at]) + shift[at], kind);
                    sums[at] += found;
                    gradient.values[at] = narrow(found);
                }
                *(Pack<FULL> *)(dx + start) = gradient;
            } else {
#pragma unroll
                for (int at = 0; at < FULL; at++) sums[at] += widen(gradient.values[at]);
            }
        }
    }
    __shared__ float gathered[8][32][FULL + 1];
#pragma unroll
    for (int at = 0; at < FULL; at++) gathered[threadIdx.y][threadIdx.x][at] = sums[at];
    __syncthreads();
    const int flat = threadIdx.y * 32 + threadIdx.x, lane = flat / FULL, which = flat % FULL;
    const int target = (blockIdx.x * 32 + lane) * FULL + which;
    if (lane < 32 && target < columns) {
        float total = 0.f;
#pragma unroll
        for (int at = 0; at < 8; at++) total += gathered[at][lane][which];
        partial[(long long)blockIdx.y * columns + target] = total;
    }
}

// One tensor of the optimizer. The layout is that of `Entry` in adamw.rs.
struct Entry {
    float *master;
    float *mean;
    float *square;
    const void *gradient;
    u16 *working;
    long long length;
    int narrow_gradient;
    float decay;
};

struct Place {
    int entry;
    int chunk;
};

#define SPAN 8192

__device__ __forceinline__ float gradient_at(const Entry &entry, long long at) {
    return entry.narrow_gradient ? __uint_as_float(((u32)((const u16 *)entry.gradient)[at]) << 16) : ((const float *)entry.gradient)[at];
}

// partial[block] = Σ g² over one chunk of one tensor.
extern "C" __global__ void squares(const Entry *entries, const Place *places, float *partial) {
    const Entry entry = entries[places[blockIdx.x].entry];
    const long long start = (long long)places[blockIdx.x].chunk * SPAN, end = min(start + SPAN, entry.length);
    float total = 0.f;
#pragma unroll 8
    for (long long at = start + threadIdx.x; at < end; at += 256) {
        const float value = gradient_at(entry, at);
        total += value * value;
    }
    total = warp_sum(total);
    __shared__ float gathered[8];
    if (threadIdx.x % 32 == 0) gathered[threadIdx.x / 32] = total;
    __syncthreads();
    if (threadIdx.x == 0) {
        total = 0.f;
        for (int at = 0; at < 8; at++) total += gathered[at];
        partial[blockIdx.x] = total;
    }
}

// norm[0] = √Σ partial · scale, norm[1] = scale · min(1, clip / norm[0]): what a gradient is multiplied with.
extern "C" __global__ void clipping(const float *partial, int count, float scale, float clip, float *norm) {
    double total = 0.0;
    for (int at = threadIdx.x; at < count; at += 1024) total += partial[at];
    __shared__ double gathered[1024];
    gathered[threadIdx.x] = total;
    __syncthreads();
    for (int half = 512; half > 0; half >>= 1) {
        if (threadIdx.x < half) gathered[threadIdx.x] += gathered[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        const float found = (float)sqrt(gathered[0]) * scale;
        norm[0] = found;
        norm[1] = scale * (found > clip ? clip / found : 1.f);
    }
}

extern "C" __global__ void adamw(const Entry *entries, const Place *places, const float *norm, float rate, float beta_1, float beta_2,
                                 float epsilon, float correction_1, float correction_2) {
    const Entry entry = entries[places[blockIdx.x].entry];
    const long long start = (long long)places[blockIdx.x].chunk * SPAN, end = min(start + SPAN, entry.length);
    const float scale = norm[1], keep = 1.f - rate * entry.decay;
#pragma unroll 4
    for (long long at = start + threadIdx.x; at < end; at += 256) {
        const float gradient = gradient_at(entry, at) * scale;
        const float mean = beta_1 * entry.mean[at] + (1.f - beta_1) * gradient;
        const float square = beta_2 * entry.square[at] + (1.f - beta_2) * gradient * gradient;
        entry.mean[at] = mean;
        entry.square[at] = square;
        const float update = (mean * correction_1) / (sqrtf(square * correction_2) + epsilon);
        const float value = entry.master[at] * keep - rate * update;
        entry.master[at] = value;
        if (entry.working) {
            u16 rounded;
            asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(rounded) : "f"(value));
            entry.working[at] = rounded;
        }
    }
}

// out[sample, row] = Σ over lists of x[sample, lists[list, row]]; an index of `places` or more is a row of zeros.
#if WIDTH % FULL == 0
#define ROW_TAKES FULL
#else
#define ROW_TAKES 1
#endif
extern "C" __global__ void gather_rows(const scalar *x, const u32 *lists, scalar *out, int count, int rows, int places) {
    const int packs = WIDTH / ROW_TAKES;
    const int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= rows * packs) return;
    const int row = at / packs, column = (at % packs) * ROW_TAKES;
    const long long sample = blockIdx.y;
    const scalar *from = x + sample * places * WIDTH + column;
    float sums[ROW_TAKES];
#pragma unroll
    for (int lane = 0; lane < ROW_TAKES; lane++) sums[lane] = 0.f;
    for (int list = 0; list < count; list++) {
        const u32 place = lists[list * rows + row];
        if (place >= (u32)places) continue;
        const Pack<ROW_TAKES> pack = *(const Pack<ROW_TAKES> *)(from + (long long)place * WIDTH);
#pragma unroll
        for (int lane = 0; lane < ROW_TAKES; lane++) sums[lane] += widen(pack.values[lane]);
    }
    Pack<ROW_TAKES> pack;
#pragma unroll
    for (int lane = 0; lane < ROW_TAKES; lane++) pack.values[lane] = narrow(sums[lane]);
    *(Pack<ROW_TAKES> *)(out + (sample * rows + row) * WIDTH + column) = pack;
}

// Images of side² pixels of three bytes as patches of WIDTH = 3·patch² numbers around zero. Image i is number rows[i], shifted
// by looks[i, 0..2] pixels, times a gain, plus an offset for each colour.
extern "C" __global__ void see(const unsigned char *pixels, const u32 *rows, const float *looks, scalar *out, int side, int patch) {
    const int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= side * side * 3) return;
    const long long image = blockIdx.y;
    const float *look = looks + image * 6;
    const int place = at / WIDTH, number = at % WIDTH, grid = side / patch;
    const int down = number / (patch * 3), right = number / 3 % patch, colour = number % 3;
    const int y = min(max(place / grid * patch + down - (int)look[1], 0), side - 1);
    const int x = min(max(place % grid * patch + right - (int)look[0], 0), side - 1);
    const float value = pixels[((long long)rows[image] * side * side + y * side + x) * 3 + colour];
    out[image * side * side * 3 + at] = narrow(value * (look[2] / 255.f) + (look[3 + colour] - 0.5f * look[2]));
}
