# fav on the official image of PostgreSQL:
#
#   docker build -t postgres-fav --build-arg PG_MAJOR=18 .

ARG PG_MAJOR=18
FROM postgres:$PG_MAJOR AS build
ARG PG_MAJOR
RUN apt-get update && \
	apt-get install -y --no-install-recommends make gcc libc6-dev libxxhash-dev postgresql-server-dev-$PG_MAJOR
COPY . /fav
RUN make -C /fav && make -C /fav install DESTDIR=/installed

FROM postgres:$PG_MAJOR
COPY --from=build /installed /
