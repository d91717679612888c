# One image for all services, the migrations and the provisioning of NATS. The command of a container
# consists of the permissions that its settings need, which permissions.js prints, and the program
# (docs/deploy.md):
#   --allow-net=… migrate.js | provision.js | NAME.js of a service
# `deno task services` writes what depends on the list of services.
# The base images are pinned by version; build arguments can pin them by digest.
ARG DENO_BUILD_IMAGE=denoland/deno:debian-2.9.6
ARG DENO_IMAGE=denoland/deno:distroless-2.9.6

FROM ${DENO_BUILD_IMAGE} AS bundles
WORKDIR /kenri
# Downloads the packages, and the bundler that Deno needs. This layer is cached until the lock changes.
# The secret "ca" contains certificates, for networks with a certificate authority of their own.
COPY deno.json deno.lock ./
COPY account/deno.json account/
COPY entitlement/deno.json entitlement/
COPY gateway/deno.json gateway/
COPY matchmaking/deno.json matchmaking/
COPY notification/deno.json notification/
COPY sender/deno.json sender/
COPY shared/deno.json shared/
COPY proto/deno.json proto/
COPY ops/deno.json ops/
COPY client/deno.json client/
RUN --mount=type=secret,id=ca \
  if [ -s /run/secrets/ca ]; then export DENO_CERT=/run/secrets/ca; fi; \
  deno install --quiet --frozen \
  && echo 'export {}' > empty.ts \
  && deno bundle --quiet --platform deno --output empty.js empty.ts

COPY services.ts ./
COPY account account
COPY entitlement entitlement
COPY gateway gateway
COPY matchmaking matchmaking
COPY notification notification
COPY sender sender
COPY shared shared
COPY proto proto
COPY migrations migrations
COPY tools tools
RUN deno run --allow-all --cached-only tools/bundle.ts /bundles

# The image contains Deno and one file for each program, but no shell, no packages and no sources.
FROM ${DENO_IMAGE}
COPY --from=bundles /bundles /kenri
WORKDIR /kenri
ENV NO_COLOR=1 DENO_NO_UPDATE_CHECK=1 DENO_DIR=/tmp/deno
USER 65532:65532
EXPOSE 8082 8080 8000 8083 8081 8084
# These permissions do not depend on the settings. No process may start a program, so none can get more
# permissions than the flags of its container give.
ENTRYPOINT ["deno", "run", \
  "--no-config", "--no-remote", "--no-npm", "--cached-only", "--no-prompt", "--unstable-cron", "--unstable-no-legacy-abort", \
  "--v8-flags=--min-semi-space-size=8,--max-semi-space-size=8,--max-old-space-size=320,--heap-growing-percent=70", \
  "--allow-env=ACCESS_*,ACCOUNT_*,ENTITLEMENT_*,GATEWAY_*,HOSTNAME,HTTP_*,LOG_*,MATCHMAKING_*,NATS_*,NOTIFICATION_*,REDIS_*,SENDER_*,SHUTDOWN_*", \
  "--ignore-env=PGHOST,PGPORT,PGUSER,PGPASSWORD,PGPASSFILE,PGDATABASE,PGAPPNAME,PGOPTIONS,PGBINARY,PGSSLMODE,PGSSLNEGOTIATION,PGCLIENT_ENCODING,PGREPLICATION,PGCONNECT_TIMEOUT,NODE_PG_FORCE_NATIVE,USER,USERNAME,HOME,APPDATA", \
  "--allow-sys=hostname"]
