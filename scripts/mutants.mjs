// npm run mutants: see programs/mutants.mjs, which Node reads only if it can.
import './node-version.cjs';

import('./programs/mutants.mjs');
