import { expect, it } from 'vitest';
import { preflightHeaders } from '../../src/http/cors.ts';
import { listEndpoints } from '../../src/server.ts';

it('a page of a named origin may use each method that the API has', () => {
  const of_api = listEndpoints().filter(({ path }) => path.startsWith('/v1/'));
  for (const method of new Set(of_api.map((endpoint) => endpoint.method))) {
    const headers = { origin: 'https://app.example', 'access-control-request-method': method };
    const allowed = preflightHeaders(['https://app.example'], 'OPTIONS', headers)?.['access-control-allow-methods'];
    expect(allowed?.split(', ')).toContain(method);
  }
});
