// npm run test:deploy: see programs/test-deploy.mjs, which Node reads only if it can.
import './node-version.cjs';

import('./programs/test-deploy.mjs');
