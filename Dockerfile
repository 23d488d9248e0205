# The program in an image of its own:
#
#     docker build -t division .
#     docker run --rm -v "$PWD:/data" division train --data folder:photographs --out run
#
# Built in one stage; the second has what the program needs to run.
FROM debian:12-slim AS build
WORKDIR /source
COPY . .
RUN scripts/setup && apt-get install -y --no-install-recommends dpkg-dev file && make deb

FROM debian:12-slim
COPY --from=build /source/build/division_*.deb /tmp/
# libcurl4 is for `division data fetch`, which opens it itself.
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates libcurl4 /tmp/division_*.deb \
    && rm -rf /tmp/division_*.deb /var/lib/apt/lists/*
WORKDIR /data
ENTRYPOINT ["division"]
