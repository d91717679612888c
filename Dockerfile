# Both services, the migrations and the provisioning of NATS in one image. A command has the permissions
# that its settings need, as permissions.js prints them, and then the program (docs/deploy.md):
#   --allow-net=… entitlement.js | notification.js | migrate.js | provision.js
# The base images are pinned by version. Build arguments can name them by digest.
ARG DENO_BUILD_IMAGE=denoland/deno:debian-2.9.6
ARG DENO_IMAGE=denoland/deno:distroless-2.9.6

FROM ${DENO_BUILD_IMAGE} AS bundles
WORKDIR /kenri
# Packages, and the bundler that Deno fetches for itself: this layer lasts until the lock changes.
# The secret "ca" is a bundle of certificates for networks with an authority of their own.
COPY deno.json deno.lock ./
COPY entitlement/deno.json entitlement/
COPY notification/deno.json notification/
COPY shared/deno.json shared/
COPY proto/deno.json proto/
COPY client/deno.json client/
COPY ops/deno.json ops/
RUN --mount=type=secret,id=ca \
  if [ -s /run/secrets/ca ]; then export DENO_CERT=/run/secrets/ca; fi; \
  deno install --quiet --frozen \
  && echo 'export {}' > empty.ts \
  && deno bundle --quiet --platform deno --output empty.js empty.ts

COPY entitlement entitlement
COPY notification notification
COPY shared shared
COPY proto proto
COPY migrations migrations
COPY tools tools
RUN deno run --allow-all --cached-only tools/bundle.ts /bundles

# No shell, no packages, no sources: Deno and one file for each program.
FROM ${DENO_IMAGE}
COPY --from=bundles /bundles /kenri
WORKDIR /kenri
ENV NO_COLOR=1 DENO_NO_UPDATE_CHECK=1 DENO_DIR=/tmp/deno
USER 65532:65532
EXPOSE 8080 8081
# Permissions that no setting changes. No process here may start a program, so none can be given more
# than the flags of its container say.
ENTRYPOINT ["deno", "run", \
  "--no-config", "--no-remote", "--no-npm", "--cached-only", "--no-prompt", "--unstable-cron", \
  "--v8-flags=--min-semi-space-size=16,--max-semi-space-size=16,--max-old-space-size=320", \
  "--allow-env=ACCESS_*,ENTITLEMENT_*,HOSTNAME,HTTP_*,LOG_*,NATS_*,NOTIFICATION_*,SHUTDOWN_*", \
  "--ignore-env=PGHOST,PGPORT,PGUSER,PGPASSWORD,PGPASSFILE,PGDATABASE,PGAPPNAME,PGOPTIONS,PGBINARY,PGSSLMODE,PGSSLNEGOTIATION,PGCLIENT_ENCODING,PGREPLICATION,PGCONNECT_TIMEOUT,NODE_PG_FORCE_NATIVE,USER,USERNAME,HOME,APPDATA", \
  "--allow-sys=hostname"]
