# Sequitur without weights: these are fetched into the volume /data at the first start, or copied there before.
FROM debian:bookworm-slim AS build
RUN apt-get update && apt-get install -y --no-install-recommends binutils ca-certificates python3-venv \
    && python3 -m venv /uv && /uv/bin/pip install "uv>=0.9.8,<1" && python3 -m venv --without-pip /opt/sequitur
# Which of torch's builds, by uv's name for it: `cpu` needs no CUDA, whose libraries are gigabytes; `cu130` brings them.
ARG TORCH_BACKEND=cpu
ENV UV_TORCH_BACKEND=$TORCH_BACKEND UV_NO_CACHE=1 VIRTUAL_ENV=/opt/sequitur PATH=/opt/sequitur/bin:/uv/bin:$PATH
WORKDIR /src
COPY requirements.txt requirements-opensearch.txt requirements-postgres.txt hatch_build.py pyproject.toml README.md LICENSE ./
# What the package needs comes before its code, so that a change of the code builds in seconds. Sequitur calls pip where
# the hub of models doesn't answer; what is excluded is asked for by others, whose parts that import it are not used.
RUN sed '/^# What the tests and checks need/,$d' requirements.txt > needed.txt \
    && printf '%s\n' cython datasets fastmcp onnxruntime opensearch-protobufs pytest > excluded.txt \
    && uv pip install --excludes excluded.txt pip -r needed.txt -r requirements-opensearch.txt -r requirements-postgres.txt
# Tests and headers of packages, code for debuggers, and what drives processors that this image has no drivers for.
RUN cd /opt/sequitur/lib/python3*/site-packages \
    && find . -type d -name tests -prune -exec rm -r {} + \
    && rm -rf torch/test torch/include torch/bin/*[Tt]est* torch/bin/protoc* \
    && rm -f openvino/libs/libopenvino_intel_[gn]pu_plugin.so openvino/libs/cache.json \
    && strip --strip-debug xllamacpp/*.so \
    && if [ "$TORCH_BACKEND" = cpu ]; then find bitsandbytes -name 'libbitsandbytes_*' ! -name '*_cpu.so' -delete; fi
COPY assistant assistant
COPY ptkb ptkb
COPY prompts prompts
# Every module is imported once: this tells whether something is missing, and leaves the bytecode of all that is used,
# without which a start takes far longer.
RUN uv pip install --no-deps . && python -I -c "import assistant, importlib, pkgutil; \
    [importlib.import_module(found.name) for found in pkgutil.walk_packages(assistant.__path__, 'assistant.') \
    if found.name != 'assistant.store.migrations.env']"

FROM debian:bookworm-slim
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates libgomp1 python3 \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home --uid 10001 sequitur && install -d -o sequitur -g sequitur /data
COPY --from=build /opt/sequitur /opt/sequitur
ENV PATH=/opt/sequitur/bin:$PATH LANG=C.UTF-8 PYTHONUNBUFFERED=1 \
    SEQUITUR_DATA_DIR=/data SEQUITUR_LOG=json SEQUITUR_WEB__HOST=0.0.0.0
USER sequitur
WORKDIR /home/sequitur
VOLUME /data
EXPOSE 7860
# It lives as soon as the page is up; whether it is ready to answer is asked at /readyz.
HEALTHCHECK --interval=15s --timeout=5s --start-period=60s --retries=4 \
    CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:7860/healthz', timeout=4)"]
STOPSIGNAL SIGTERM
CMD ["sequitur", "serve"]
