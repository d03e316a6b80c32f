/** Returns the service's address for clients on its own machine. */
export function localUrl(address: { host: string; port: number }): string {
  const host = address.host === '0.0.0.0' || address.host === '::' ? '127.0.0.1' : address.host;
  return `http://${host.includes(':') ? `[${host}]` : host}:${address.port}`;
}
