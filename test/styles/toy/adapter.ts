import { chatOptionProblems } from '../../../src/providers/http/chat-options.ts';
import { openChatClient } from '../../../src/providers/http/chat-http.ts';
import type { Adapter } from '../../../src/providers/provider.ts';
import { toy } from './codec.ts';

/** A server that speaks the toy style. */
export const toy_adapter = {
  serves: (kind) => kind === 'chat',
  checkChatOptions: chatOptionProblems,
  openChat: ({ base_url = '', ...config }, parts) => {
    const client = openChatClient({ ...config, base_url }, parts);
    return {
      styles: [toy],
      send: ({ body, timeout_ms }, signal) =>
        client.post('/toy', {}, body, { signal, connect_timeout_ms: timeout_ms.connect }),
      close: () => client.close(),
    };
  },
} satisfies Adapter;
