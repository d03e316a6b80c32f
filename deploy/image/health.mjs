// HEALTHCHECK of the image: 0 if the service can serve. A worker serves nothing: its metrics answer, if they have a port.
const { PORT = '8080', MEDLEY_ROLE = 'all', MEDLEY_METRICS } = process.env;
const metrics_port = /(\d+)$/.exec(MEDLEY_METRICS ?? '')?.[1];
const address =
  MEDLEY_ROLE !== 'worker'
    ? `http://127.0.0.1:${PORT}/readyz`
    : metrics_port && `http://127.0.0.1:${metrics_port}/metrics`;
if (address) {
  const answer = await fetch(address, { signal: AbortSignal.timeout(4_000) }).catch(() => undefined);
  process.exitCode = answer?.ok ? 0 : 1;
}
