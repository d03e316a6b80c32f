// npm run messages: see programs/messages.mjs, which Node reads only if it can.
import './node-version.cjs';

import('./programs/messages.mjs');
