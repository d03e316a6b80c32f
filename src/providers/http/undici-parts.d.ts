/** Parts of undici whose types its index has, and those of its pools that it has not. */
declare module 'undici/lib/api/api-request.js' {
  import type { Dispatcher } from 'undici';
  const request: Dispatcher['request'];
  export default request;
}
declare module 'undici/lib/dispatcher/dispatcher.js' {
  export { Dispatcher as default } from 'undici';
}
declare module 'undici/lib/dispatcher/pool-base.js' {
  /** The method of a pool that answers the client to ask next, twice at each request. */
  export const kGetDispatcher: unique symbol;
  /** The method of a pool that takes a new client into it. */
  export const kAddClient: unique symbol;
  /** True of a pool's client that is busy. */
  export const kNeedDrain: unique symbol;
}
declare module 'undici/lib/dispatcher/pool.js' {
  import type { Client, Pool } from 'undici';
  import type { kAddClient, kGetDispatcher, kNeedDrain } from 'undici/lib/dispatcher/pool-base.js';
  export type PooledClient = Client & { [kNeedDrain]: boolean };
  export default class PoolWithParts extends Pool {
    [kGetDispatcher](): PooledClient | undefined;
    [kAddClient](client: PooledClient): this;
  }
}
