import { createSecureContext, type SecureContext } from 'node:tls';
import { rememberByObject } from '../lib/remember.ts';

/** Proxy and certificates of a connection, by the operator's settings. Absent members: no proxy, and the usual certificates. */
export type DialOptions = {
  /** Address of an HTTP(S) proxy, with its user and password. */
  proxy?: string | undefined;
  /**
   * The operator has named the target: where its name is unknown here, the proxy resolves it. A target that somebody else
   * chose must have an address here, which is judged.
   */
  proxy_resolves?: boolean;
  tls?: TlsParts | undefined;
};

/** Texts in PEM: the certificate and key of this side, and the authorities that it trusts instead of the usual ones. */
export type TlsParts = { cert?: string; key?: string; ca?: string; server_name?: string };

/** Returns the certificates of a connection, parsed once. */
export const secureContextOf: (tls: TlsParts) => SecureContext = rememberByObject(({ cert, key, ca }: TlsParts) =>
  createSecureContext({
    ...(cert !== undefined && { cert }),
    ...(key !== undefined && { key }),
    ...(ca !== undefined && { ca }),
  }),
);
