// npm run package: see programs/package.mjs, which Node reads only if it can.
import './node-version.cjs';

import('./programs/package.mjs');
