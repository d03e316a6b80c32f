// npm run fuzz: see programs/fuzz.mjs, which Node reads only if it can.
import './node-version.cjs';

import('./programs/fuzz.mjs');
