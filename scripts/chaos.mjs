// npm run chaos: see programs/chaos.mjs, which Node reads only if it can.
import './node-version.cjs';

import('./programs/chaos.mjs');
