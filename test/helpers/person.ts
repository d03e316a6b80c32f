/** A browser as far as the dashboard's requests go: it keeps cookies and says where it is. */
export type Browser = {
  get(path: string, headers?: Record<string, string>): Promise<Seen>;
  post(path: string, body?: unknown, headers?: Record<string, string>): Promise<Seen>;
  send(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Seen>;
  /** Every cookie that was ever set, as it was written. */
  readonly set_cookies: string[];
};

export type Seen = { status: number; headers: Headers; text: string; json: unknown; cookies: string[] };

export function browserOf(url: string): Browser {
  const jar = new Map<string, string>();
  const set_cookies: string[] = [];
  const send: Browser['send'] = async (method, path, body, headers = {}) => {
    const response = await fetch(url + path, {
      method,
      redirect: 'manual',
      headers: {
        cookie: [...jar].map(([name, value]) => `${name}=${value}`).join('; '),
        ...(method !== 'GET' && { origin: url, 'sec-fetch-site': 'same-origin' }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const cookies = response.headers.getSetCookie();
    for (const cookie of cookies) keep(jar, cookie);
    set_cookies.push(...cookies);
    const text = await response.text();
    return { status: response.status, headers: response.headers, text, json: parsed(text), cookies };
  };
  return {
    get: (path, headers) => send('GET', path, undefined, headers),
    post: (path, body = {}, headers) => send('POST', path, body, headers),
    send,
    set_cookies,
  };
}

function keep(jar: Map<string, string>, cookie: string): void {
  const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(cookie) ?? [];
  if (/max-age=0(;|$)/i.test(cookie) || value === '') jar.delete(name);
  else jar.set(name, value);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
