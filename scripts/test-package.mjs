// npm run test:package: see programs/test-package.mjs, which Node reads only if it can.
import './node-version.cjs';

import('./programs/test-package.mjs');
