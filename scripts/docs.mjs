// npm run docs: see programs/docs.mjs, which Node reads only if it can.
import './node-version.cjs';

import('./programs/docs.mjs');
