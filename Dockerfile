# Sequitur without weights: these are fetched into the volume /data at the first start, or copied there before.
FROM python:3.11-slim AS build
RUN python -m venv /opt/sequitur
ENV PATH=/opt/sequitur/bin:$PATH PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /src
COPY requirements.txt requirements-opensearch.txt requirements-postgres.txt hatch_build.py pyproject.toml README.md LICENSE ./
# What the package needs comes before its code, so that a change of the code builds in seconds.
RUN sed '/^# What the tests and checks need/,$d' requirements.txt > needed.txt \
    && pip install -r needed.txt -r requirements-opensearch.txt -r requirements-postgres.txt
COPY assistant assistant
COPY ptkb ptkb
COPY prompts prompts
RUN pip install --no-deps .

FROM python:3.11-slim
RUN apt-get update && apt-get install -y --no-install-recommends libgomp1 && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home --uid 10001 sequitur && install -d -o sequitur /data
COPY --from=build /opt/sequitur /opt/sequitur
ENV PATH=/opt/sequitur/bin:$PATH PYTHONUNBUFFERED=1 SEQUITUR_DATA_DIR=/data SEQUITUR_LOG=json SEQUITUR_WEB__HOST=0.0.0.0
USER sequitur
WORKDIR /home/sequitur
VOLUME /data
EXPOSE 7860
# It lives as soon as the page is up; whether it is ready to answer is asked at /readyz.
HEALTHCHECK --interval=15s --timeout=5s --start-period=60s --retries=4 \
    CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:7860/healthz', timeout=4)"]
STOPSIGNAL SIGTERM
CMD ["sequitur", "serve"]
