// npm run test:s3: see programs/s3.mjs, which Node reads only if it can.
import './node-version.cjs';

import('./programs/s3.mjs');
