// npm run clients: see programs/clients.mjs, which Node reads only if it can.
import './node-version.cjs';

import('./programs/clients.mjs');
