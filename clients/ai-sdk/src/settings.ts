import { loadApiKey, loadSetting, type FetchFunction } from '@ai-sdk/provider-utils';
import { Medley, type Fetch } from '@medley/client';

export type MedleyProviderSettings = {
  /** The address of the service, with or without `/v1`. MEDLEY_URL unless set. */
  baseURL?: string | undefined;
  /** MEDLEY_API_KEY unless set. */
  apiKey?: string | undefined;
  /** Headers of every request to the service. */
  headers?: Record<string, string | undefined> | undefined;
  /** Makes the requests instead of the global one. */
  fetch?: FetchFunction | undefined;
};

/** A service with its key. `base_url` has no `/v1` and no slash at its end. */
export type Connection = {
  base_url: string;
  api_key: string;
  headers: Record<string, string>;
  fetch: FetchFunction;
};

/** Reads settings and environment. Throws LoadSettingError, LoadAPIKeyError, or MedleyError for an address that is none. */
export function connect(settings: MedleyProviderSettings): Connection {
  const { fetch = (input, init) => globalThis.fetch(input, init) } = settings;
  const address = loadSetting({
    settingValue: settings.baseURL,
    environmentVariableName: 'MEDLEY_URL',
    settingName: 'baseURL',
    description: 'Medley base URL',
  });
  const api_key = loadApiKey({
    apiKey: settings.apiKey,
    environmentVariableName: 'MEDLEY_API_KEY',
    description: 'Medley',
  }).trim();
  const base_url = address.replace(/\/+$/, '').replace(/\/v1$/, '');
  new Medley({ base_url, api_key }); // checks both
  return { base_url, api_key, headers: setHeaders(settings.headers), fetch };
}

/** Returns the headers that have a value. */
export function setHeaders(headers: Record<string, string | undefined> = {}): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  );
}

/**
 * Makes the client of one call. Headers of caller and provider go to the service alone, never to the links of outputs;
 * `onAnswer` gets the headers of each answer of the service.
 */
export function clientFor(
  connection: Connection,
  headers: Record<string, string>,
  onAnswer: (headers: Headers) => void,
): Medley {
  const { base_url, api_key } = connection;
  const fetch: Fetch = async (url, init) => {
    if (!url.startsWith(`${base_url}/v1/`)) return connection.fetch(url, init);
    const all = new Headers({ ...connection.headers, ...headers });
    for (const [name, value] of new Headers(init.headers)) all.set(name, value);
    const response = await connection.fetch(url, { ...init, headers: all });
    onAnswer(response.headers);
    return response;
  };
  return new Medley({ base_url, api_key, fetch });
}
