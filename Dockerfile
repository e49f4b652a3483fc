# The program for NVIDIA GPUs. NOT TESTED: the machine on which this file was written can run neither Docker nor a GPU. The
# commands of the build are those that README.md gives for a GPU.
#
#   docker build --build-arg COMPUTE_CAP=90 -t refactor-vla .
#   docker run --rm --gpus all -v "$PWD:/work" refactor-vla run demos/kitchen --out runs/kitchen --device cuda:0
#
# COMPUTE_CAP is the compute capability of the GPU without its point: 80 (A100), 86 (RTX 30), 89 (RTX 40, L4), 90 (H100, H200).
# There is no GPU while an image is built, so it cannot be detected. FEATURES=nccl,asm adds several GPUs.
ARG CUDA=12.8.1
ARG SYSTEM=ubuntu24.04

FROM nvidia/cuda:${CUDA}-devel-${SYSTEM} AS build
ARG COMPUTE_CAP=90
ARG FEATURES=cuda,asm
RUN apt-get update \
    && apt-get install --yes --no-install-recommends build-essential ca-certificates curl nasm \
    && rm -rf /var/lib/apt/lists/*
RUN curl --proto '=https' --tlsv1.2 --silent --show-error --fail https://sh.rustup.rs \
    | sh -s -- -y --profile minimal --default-toolchain stable
ENV PATH=/root/.cargo/bin:$PATH CUDA_COMPUTE_CAP=$COMPUTE_CAP
WORKDIR /source
COPY . .
RUN cargo build --release --locked --package cli --features "$FEATURES"

# cuBLAS, cuRAND and NVRTC are in the image of the runtime; the driver comes from the host.
FROM nvidia/cuda:${CUDA}-runtime-${SYSTEM}
COPY --from=build /source/target/release/refactor-vla /usr/local/bin/refactor-vla
WORKDIR /work
ENTRYPOINT ["refactor-vla"]
