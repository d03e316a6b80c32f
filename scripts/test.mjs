// npm test: see programs/test.mjs, which Node reads only if it can.
import './node-version.cjs';

import('./programs/test.mjs');
