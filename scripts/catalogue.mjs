// npm run catalogue: see programs/catalogue.mjs, which Node reads only if it can.
import './node-version.cjs';

import('./programs/catalogue.mjs');
