// npm run openapi-lint: see programs/openapi-lint.mjs, which Node reads only if it can.
import './node-version.cjs';

import('./programs/openapi-lint.mjs');
