# docker build -t isogloss . && docker run --rm -v "$PWD:/work" isogloss quickstart --out runs/quickstart
# The torch of Linux wheels has the libraries of NVIDIA GPUs (docker run --gpus all); a smaller build for processors alone is taken
# from an index of such builds: --build-arg PIP_EXTRA_INDEX_URL=ADDRESS.
FROM python:3.12-slim
ARG PIP_EXTRA_INDEX_URL=
COPY . /opt/isogloss
RUN pip install --no-cache-dir "$(grep '^torch==' /opt/isogloss/constraints.txt)" \
 && pip install --no-cache-dir -c /opt/isogloss/constraints.txt "/opt/isogloss[torch]" \
 && useradd --create-home user
USER user
WORKDIR /work
ENTRYPOINT ["isogloss"]
CMD ["--help"]
