// npm run test:python: see programs/test-python.mjs, which Node reads only if it can.
import './node-version.cjs';

import('./programs/test-python.mjs');
