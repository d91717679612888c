// The profile "observability" of compose.yaml matches the services and its own files.
import assert from "node:assert/strict";
import { serviceNames } from "../../tools/services.ts";
import { read, yamlOf } from "../support/pages.ts";

const { services, secrets } = yamlOf("compose.yaml");
const profile = "observability";
const watchers = Object.entries(services).filter(([, service]) =>
  (service as { profiles?: string[] }).profiles?.includes(profile)
);

Deno.test("the monitoring is started only on request, and reachable only from this machine", () => {
  assert.deepEqual(watchers.map(([name]) => name).sort(), ["grafana", "prometheus", "traces"]);
  // deno-lint-ignore no-explicit-any
  for (const [name, service] of watchers as [string, any][]) {
    assert.ok(service.read_only && service.mem_limit && service.pids_limit, name);
    assert.deepEqual(service.cap_drop, ["ALL"], name);
    assert.match(service.image, /:[\w.]*\d+\.\d+\.\d+}$/, name);
    for (const port of service.ports) assert.match(port, /^127\.0\.0\.1:/, name);
    for (const volume of service.volumes ?? []) {
      const [from] = volume.split(":");
      if (from.startsWith("./")) Deno.statSync(new URL(`../../${from}`, import.meta.url));
    }
  }
});

Deno.test("Prometheus scrapes each service where it listens, on a network that they share", () => {
  const { scrape_configs, rule_files } = yamlOf("deploy/observability/prometheus.yaml");
  assert.deepEqual(rule_files, ["records.yaml", "alerts.yaml"]);
  for (const name of serviceNames) {
    const [config] = scrape_configs.filter(({ job_name }: { job_name: string }) =>
      job_name === name
    );
    const [{ names, port }] = config.dns_sd_configs;
    assert.deepEqual(names, [name]);
    const token = config.authorization.credentials_file;
    const mounted = services.prometheus.secrets.map((secret: string) => `/run/secrets/${secret}`);
    assert.ok(mounted.includes(token), token);
    const { environment, networks } = services[name];
    assert.equal(`${port}`, environment[`${name.toUpperCase()}_HTTP_PORT`]);
    const shared = networks.filter((one: string) => services.prometheus.networks.includes(one));
    assert.ok(shared.length > 0, name);
  }
});

Deno.test("no website in the operator's browser may query the monitoring", () => {
  const { prometheus: { command }, grafana: { environment } } = services;
  const [origins = ".*"] = command.flatMap((word: string) =>
    word.split("--web.cors.origin=")[1] ?? []
  );
  for (const origin of ["https://site.example", "http://127.0.0.1:9090", "null"]) {
    assert.doesNotMatch(origin, new RegExp(`^(?:${origins})$`));
  }
  assert.equal(environment.GF_SERVER_ENFORCE_DOMAIN, "true");
  assert.ok(read("docs/deploy.md").includes(`(<http://${environment.GF_SERVER_DOMAIN}:3000>)`));
});

Deno.test("the token of Prometheus is a file that git ignores", () => {
  const { file } = secrets["prometheus-token"];
  assert.ok(read(".gitignore").split("\n").includes(file.replace("./", "/")), file);
});

Deno.test("traces are sent to where they are received, and Grafana reads them from there", () => {
  const { port, hostname } = new URL(services.entitlement.environment.OTEL_EXPORTER_OTLP_ENDPOINT);
  assert.equal(hostname, "traces");
  assert.ok(
    services.traces.command.some((word: string) => word.endsWith(`http.endpoint=0.0.0.0:${port}`)),
  );
  assert.ok(services.entitlement.networks.includes(services.traces.networks[0]));
  const { datasources } = yamlOf("deploy/observability/grafana/datasources.yaml");
  for (const { url } of datasources) assert.ok(new URL(url).hostname in services, url);
  const [dashboards] = yamlOf("deploy/observability/grafana/dashboards.yaml").providers;
  const mounts: string[] = services.grafana.volumes;
  assert.ok(mounts.some((mount) => mount.includes(`kenri.json:${dashboards.options.path}/`)));
  JSON.parse(read("deploy/observability/grafana/kenri.json"));
});
