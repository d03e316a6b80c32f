import { expect, it } from 'vitest';
import { parse } from 'yaml';
import { default_timeouts } from '../../src/http/options.ts';
import { readDocument } from './document.ts';

/** The balancers of docs/scaling.md, by what their own documentation says of these words. */

const { keep_alive_ms, silence_ms } = default_timeouts;

function fileOf(name: string): string {
  const block = readDocument('docs/scaling.md').blocks.find(({ argument }) => argument === name);
  if (!block) throw new Error(`there is no ${name}`);
  return block.text;
}

/** Milliseconds of the first duration in seconds behind these words. */
function durationIn(text: string, words: string): number {
  const [, seconds] = new RegExp(`${words}\\s*:?\\s*([\\d.]+)s\\b`).exec(text) ?? [];
  if (seconds === undefined) throw new Error(`there is no ${words}`);
  return 1_000 * Number(seconds);
}

it.each([
  ['nginx.conf', ['proxy_read_timeout', 'proxy_send_timeout'], ['keepalive_timeout']],
  ['haproxy.cfg', ['timeout server', 'timeout client'], ['timeout http-keep-alive']],
  ['Caddyfile', ['response_header_timeout'], ['keepalive']],
  ['envoy.yaml', ['stream_idle_timeout'], ['idle_timeout']],
])('%s waits longer than a node does, and closes idle connections sooner', (name, waits, idle) => {
  const text = fileOf(name);
  for (const words of waits) expect(durationIn(text, words)).toBeGreaterThan(silence_ms);
  for (const words of idle) expect(durationIn(text, `(?<!_)${words}`)).toBeLessThan(keep_alive_ms);
});

it('nginx keeps nothing of a stream or an upload, and sends no POST twice', () => {
  const text = fileOf('nginx.conf');
  expect(text.split('{').length).toBe(text.split('}').length);
  for (const line of ['proxy_buffering off;', 'proxy_request_buffering off;', 'proxy_http_version 1.1;'])
    expect(text).toContain(line);
  expect(/proxy_next_upstream (.*?);/.exec(text)?.[1]).toBe('error timeout');
  expect(text).not.toContain('non_idempotent');
});

it('HAProxy and Caddy look at /readyz, and repeat only what was not sent', () => {
  const [haproxy, caddy] = [fileOf('haproxy.cfg'), fileOf('Caddyfile')];
  expect(haproxy).toContain('option httpchk GET /readyz');
  expect(haproxy).toContain('retry-on conn-failure');
  expect(caddy).toContain('health_uri /readyz');
  expect(caddy).toContain('flush_interval -1');
  expect(caddy).not.toContain('lb_retry_match');
});

it('Envoy ends no stream by its time, looks at /readyz, and repeats only what was not sent', () => {
  const file: unknown = parse(fileOf('envoy.yaml'));
  const text = JSON.stringify(file);
  expect(text).toContain('"timeout":"0s","retry_policy":{"retry_on":"connect-failure","num_retries":2}');
  expect(text).toContain('"http_health_check":{"path":"/readyz"}');
});
