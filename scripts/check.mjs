// npm run check: see programs/check.mjs, which Node reads only if it can.
import './node-version.cjs';

import('./programs/check.mjs');
