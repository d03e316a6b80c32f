// npm run test:prometheus: see programs/prometheus.mjs, which Node reads only if it can.
import './node-version.cjs';

import('./programs/prometheus.mjs');
