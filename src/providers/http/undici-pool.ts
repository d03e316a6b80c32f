import request from 'undici/lib/api/api-request.js';
import Dispatcher from 'undici/lib/dispatcher/dispatcher.js';
import UndiciPool, { type PooledClient } from 'undici/lib/dispatcher/pool.js';
import { kAddClient, kGetDispatcher, kNeedDrain } from 'undici/lib/dispatcher/pool-base.js';

/*
 * Of undici what calls upstreams. With its fetch, its caches and its mocks it is another 70 modules: 10 MB for as
 * long as the service runs, and 70 ms of its start.
 */
Object.assign(Dispatcher.prototype, { request }); // as undici's index does

/**
 * undici's pool, which asks the connection that was free last. Its own looks at all that are busy, twice a request,
 * before it finds a free one.
 */
export class Pool extends UndiciPool {
  /** The one that was free last is last; one that is busy again is dropped when it is found here. */
  #free: PooledClient[] = [];

  override [kGetDispatcher](): PooledClient | undefined {
    for (let client = this.#free.at(-1); client; client = this.#free.at(-1)) {
      if (!client[kNeedDrain]) return client;
      this.#free.pop();
    }
    return super[kGetDispatcher]();
  }

  override [kAddClient](client: PooledClient): this {
    super[kAddClient](client);
    const noteFree = () => void (client[kNeedDrain] || this.#free.push(client));
    client.on('drain', noteFree); // behind the pool's own listener, which may have given it work that waited
    client.on('connectionError', () => {
      client.off('drain', noteFree); // the pool has dropped it
      this.#free = this.#free.filter((other) => other !== client);
    });
    noteFree();
    return this;
  }
}
