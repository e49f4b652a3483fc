// Attention over short sequences on tensor cores: softmax(q kᵀ/√HEAD + mask) v for all rows at once.
//
// One block holds one head of one sequence in shared memory, one warp takes 16 of its rows, so scores never leave the
// registers. Compiled by NVRTC for a length (16·TILES rows, of which `tokens` are real), a head width and a mask.
// qkv is [batch, tokens, 3, heads, HEAD] in bf16 without its bias, which is added on the way in.

typedef unsigned short u16;
typedef unsigned int u32;

#ifndef TILES
#define TILES 3
#define HEAD 64
#define CAUSAL 1
#endif

#define ROWS (16 * TILES)
#define PITCH (HEAD + 8)        // Eight more, so that the rows of a tile start in different banks.
#define SCORES (ROWS + 8)
#define PACKS (HEAD / 8)

__device__ __forceinline__ float widen(u16 value) { return __uint_as_float(((u32)value) << 16); }

__device__ __forceinline__ u32 pair(float low, float high) {
    u32 result;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(result) : "f"(high), "f"(low));
    return result;
}

struct alignas(16) Pack {
    u32 values[4];
};

// d += a·b with a 16×16, b 16×8, d 16×8.
__device__ __forceinline__ void multiply(float (&d)[4], const u32 (&a)[4], u32 b0, u32 b1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Four 8×8 tiles, each transposed; a lane gives the address of one row.
__device__ __forceinline__ void load_transposed(u32 (&result)[4], const u16 *row) {
    const u32 address = (u32)__cvta_generic_to_shared(row);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(result[0]), "=r"(result[1]), "=r"(result[2]), "=r"(result[3])
                 : "r"(address));
}

// Rows of one head into shared memory, the bias added; rows past the end are zero.
__device__ __forceinline__ void fill(u16 *target, const u16 *source, const float *bias, int tokens, int stride) {
    for (int at = threadIdx.x; at < ROWS * PACKS; at += 32 * TILES) {
        const int row = at / PACKS, column = (at % PACKS) * 8;
        Pack pack = {{0u, 0u, 0u, 0u}};
        if (row < tokens) {
            pack = *(const Pack *)(source + (long long)row * stride + column);
            if (bias) {
#pragma unroll
                for (int which = 0; which < 4; which++) {
                    const u32 both = pack.values[which];
                    pack.values[which] = pair(widen((u16)both) + bias[column + 2 * which], widen((u16)(both >> 16)) + bias[column + 2 * which + 1]);
                }
            }
        }
        *(Pack *)(target + row * PITCH + column) = pack;
    }
}

// A warp's 16 rows from shared memory to where they belong.
__device__ __forceinline__ void flush(u16 *target, const u16 *source, int first, int tokens, int stride) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int at = lane; at < 16 * PACKS; at += 32) {
        const int row = first + at / PACKS, column = (at % PACKS) * 8;
        if (row < tokens) *(Pack *)(target + (long long)row * stride + column) = *(const Pack *)(source + row * PITCH + column);
    }
}

// A 16-row tile of accumulators into shared memory, in bf16.
__device__ __forceinline__ void put(u16 *target, const float (&tile)[HEAD / 8][4], int first, float low, float high) {
    const int group = (threadIdx.x % 32) / 4, quad = threadIdx.x % 4;
#pragma unroll
    for (int n = 0; n < HEAD / 8; n++) {
        *(u32 *)(target + (first + group) * PITCH + n * 8 + quad * 2) = pair(tile[n][0] * low, tile[n][1] * low);
        *(u32 *)(target + (first + group + 8) * PITCH + n * 8 + quad * 2) = pair(tile[n][2] * high, tile[n][3] * high);
    }
}

// scores[n] = rows·otherᵀ for the warp's 16 rows and all rows of the other.
__device__ __forceinline__ void products(float (&scores)[2 * TILES][4], const u16 *rows, const u16 *other, int first) {
    const int group = (threadIdx.x % 32) / 4, quad = threadIdx.x % 4;
#pragma unroll
    for (int n = 0; n < 2 * TILES; n++) scores[n][0] = scores[n][1] = scores[n][2] = scores[n][3] = 0.f;
#pragma unroll
    for (int k = 0; k < HEAD / 16; k++) {
        const u16 *mine = rows + (first + group) * PITCH + k * 16 + quad * 2;
        const u32 a[4] = {*(const u32 *)mine, *(const u32 *)(mine + 8 * PITCH), *(const u32 *)(mine + 8), *(const u32 *)(mine + 8 * PITCH + 8)};
#pragma unroll
        for (int n = 0; n < 2 * TILES; n++) {
            const u16 *theirs = other + (n * 8 + group) * PITCH + k * 16 + quad * 2;
            multiply(scores[n], a, *(const u32 *)theirs, *(const u32 *)(theirs + 8));
        }
    }
}

// The exponentials of masked scores less their row's maximum, and the inverse of their sums for the two rows of a lane.
__device__ __forceinline__ void exponentials(float (&scores)[2 * TILES][4], int first, int tokens, float scale, float (&inverse)[2]) {
    const int group = (threadIdx.x % 32) / 4, quad = threadIdx.x % 4;
    float most[2] = {-1e30f, -1e30f}, total[2] = {0.f, 0.f};
#pragma unroll
    for (int n = 0; n < 2 * TILES; n++)
#pragma unroll
        for (int at = 0; at < 4; at++) {
            const int column = n * 8 + quad * 2 + at % 2, row = first + group + 8 * (at / 2);
            const bool seen = column < tokens && (!CAUSAL || column <= row);
            scores[n][at] = seen ? scores[n][at] * scale : -1e30f;
            most[at / 2] = fmaxf(most[at / 2], scores[n][at]);
        }
#pragma unroll
    for (int half = 0; half < 2; half++) {
        most[half] = fmaxf(most[half], __shfl_xor_sync(0xffffffffu, most[half], 1));
        most[half] = fmaxf(most[half], __shfl_xor_sync(0xffffffffu, most[half], 2));
    }
#pragma unroll
    for (int n = 0; n < 2 * TILES; n++)
#pragma unroll
        for (int at = 0; at < 4; at++) {
            scores[n][at] = __expf(scores[n][at] - most[at / 2]);
            total[at / 2] += scores[n][at];
        }
#pragma unroll
    for (int half = 0; half < 2; half++) {
        total[half] += __shfl_xor_sync(0xffffffffu, total[half], 1);
        total[half] += __shfl_xor_sync(0xffffffffu, total[half], 2);
        inverse[half] = __fdividef(1.f, total[half]);
    }
}

// result += scores·other, the scores being accumulators of this warp.
__device__ __forceinline__ void weigh(float (&result)[HEAD / 8][4], const float (&scores)[2 * TILES][4], const u16 *other) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int k = 0; k < TILES; k++) {
        const u32 a[4] = {pair(scores[2 * k][0], scores[2 * k][1]), pair(scores[2 * k][2], scores[2 * k][3]),
                          pair(scores[2 * k + 1][0], scores[2 * k + 1][1]), pair(scores[2 * k + 1][2], scores[2 * k + 1][3])};
#pragma unroll
        for (int n = 0; n < HEAD / 8; n += 2) {
            u32 b[4];
            load_transposed(b, other + (k * 16 + lane % 16) * PITCH + n * 8 + (lane / 16) * 8);
            multiply(result[n], a, b[0], b[1]);
            multiply(result[n + 1], a, b[2], b[3]);
        }
    }
}

// result += scoresᵀ·other for 16 columns of the scores, which lie in shared memory.
__device__ __forceinline__ void weigh_transposed(float (&result)[HEAD / 8][4], const u16 *scores, const u16 *other, int first) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int k = 0; k < TILES; k++) {
        u32 a[4];
        load_transposed(a, scores + (k * 16 + (lane / 16) * 8 + lane % 8) * SCORES + first + ((lane / 8) % 2) * 8);
#pragma unroll
        for (int n = 0; n < HEAD / 8; n += 2) {
            u32 b[4];
            load_transposed(b, other + (k * 16 + lane % 16) * PITCH + n * 8 + (lane / 16) * 8);
            multiply(result[n], a, b[0], b[1]);
            multiply(result[n + 1], a, b[2], b[3]);
        }
    }
}

__device__ __forceinline__ void clear(float (&tile)[HEAD / 8][4]) {
#pragma unroll
    for (int n = 0; n < HEAD / 8; n++) tile[n][0] = tile[n][1] = tile[n][2] = tile[n][3] = 0.f;
}

// Shared memory: q, k, v.
extern "C" __global__ void __launch_bounds__(32 * TILES)
    attention_forward(const u16 *qkv, const float *bias, u16 *out, int tokens, int heads, float scale) {
    extern __shared__ __align__(16) u16 shared[];
    u16 *q = shared, *k = q + ROWS * PITCH, *v = k + ROWS * PITCH;
    const int head = blockIdx.x % heads, width = heads * HEAD, first = 16 * (threadIdx.x / 32);
    const long long sequence = blockIdx.x / heads;
    const u16 *source = qkv + sequence * tokens * 3 * width + head * HEAD;
    fill(q, source, bias + head * HEAD, tokens, 3 * width);
    fill(k, source + width, bias + width + head * HEAD, tokens, 3 * width);
    fill(v, source + 2 * width, bias + 2 * width + head * HEAD, tokens, 3 * width);
    __syncthreads();
    float scores[2 * TILES][4], inverse[2], result[HEAD / 8][4];
    products(scores, q, k, first);
    exponentials(scores, first, tokens, scale, inverse);
    clear(result);
    weigh(result, scores, v);
    // The warp's own queries are done with: their place takes the result.
    __syncwarp();
    put(q, result, first, inverse[0], inverse[1]);
    __syncwarp();
    flush(out + sequence * tokens * width + head * HEAD, q, first, tokens, width);
}

// Shared memory: q, k, v, the gradient of the output, then probabilities and the gradient of the scores.
extern "C" __global__ void __launch_bounds__(32 * TILES)
    attention_backward(const u16 *qkv, const float *bias, const u16 *gradient, u16 *dqkv, int tokens, int heads, float scale) {
    extern __shared__ __align__(16) u16 shared[];
    u16 *q = shared, *k = q + ROWS * PITCH, *v = k + ROWS * PITCH, *g = v + ROWS * PITCH;
    u16 *p = g + ROWS * PITCH, *ds = p + ROWS * SCORES;
    const int head = blockIdx.x % heads, width = heads * HEAD, lane = threadIdx.x % 32, first = 16 * (threadIdx.x / 32);
    const int group = lane / 4, quad = lane % 4;
    const long long sequence = blockIdx.x / heads;
    const u16 *source = qkv + sequence * tokens * 3 * width + head * HEAD;
    u16 *target = dqkv + sequence * tokens * 3 * width + head * HEAD;
    fill(q, source, bias + head * HEAD, tokens, 3 * width);
    fill(k, source + width, bias + width + head * HEAD, tokens, 3 * width);
    fill(v, source + 2 * width, bias + 2 * width + head * HEAD, tokens, 3 * width);
    fill(g, gradient + sequence * tokens * width + head * HEAD, nullptr, tokens, width);
    __syncthreads();
    float scores[2 * TILES][4], slopes[2 * TILES][4], inverse[2], result[HEAD / 8][4];
    products(scores, q, k, first);
    exponentials(scores, first, tokens, scale, inverse);
    products(slopes, g, v, first);
    float delta[2] = {0.f, 0.f};
#pragma unroll
    for (int n = 0; n < 2 * TILES; n++)
#pragma unroll
        for (int at = 0; at < 4; at++) {
            scores[n][at] *= inverse[at / 2];
            delta[at / 2] += scores[n][at] * slopes[n][at];
        }
#pragma unroll
    for (int half = 0; half < 2; half++) {
        delta[half] += __shfl_xor_sync(0xffffffffu, delta[half], 1);
        delta[half] += __shfl_xor_sync(0xffffffffu, delta[half], 2);
    }
#pragma unroll
    for (int n = 0; n < 2 * TILES; n++) {
#pragma unroll
        for (int at = 0; at < 4; at++) slopes[n][at] = scores[n][at] * (slopes[n][at] - delta[at / 2]) * scale;
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const int place = (first + group + 8 * half) * SCORES + n * 8 + quad * 2;
            *(u32 *)(p + place) = pair(scores[n][2 * half], scores[n][2 * half + 1]);
            *(u32 *)(ds + place) = pair(slopes[n][2 * half], slopes[n][2 * half + 1]);
        }
    }
    clear(result);
    weigh(result, slopes, k);
    // From here on keys and values are needed by nobody: their places take the results.
    __syncthreads();
    put(v, result, first, 1.f, 1.f);
    __syncwarp();
    flush(target, v, first, tokens, 3 * width);
    clear(result);
    weigh_transposed(result, ds, q, first);
    put(k, result, first, 1.f, 1.f);
    __syncwarp();
    flush(target + width, k, first, tokens, 3 * width);
    clear(result);
    weigh_transposed(result, p, g, first);
    put(v, result, first, 1.f, 1.f);
    __syncwarp();
    flush(target + 2 * width, v, first, tokens, 3 * width);
}
