import request from 'undici/lib/api/api-request.js';
import Dispatcher from 'undici/lib/dispatcher/dispatcher.js';
import Pool from 'undici/lib/dispatcher/pool.js';

/**
 * Of undici what calls upstreams. With its fetch, its caches and its mocks it is another 70 modules: 10 MB for as
 * long as the service runs, and 70 ms of its start.
 */
export { Pool };

Object.assign(Dispatcher.prototype, { request }); // as undici's index does
