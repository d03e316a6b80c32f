import type { Style } from './conversation.ts';
import type { Relay, RelayOptions } from './relay.ts';

export function openRelay(options: RelayOptions): Relay {
  throw new Error(`no relay from ${options.upstream} to ${options.caller}`);
}

export function errorEvent(style: Style, error: { type: string; message: string; request_id: string }): Buffer {
  const { request_id, ...told } = error;
  return Buffer.from(
    style === 'messages'
      ? `event: error\ndata: ${JSON.stringify({ type: 'error', error: told, request_id })}\n\n`
      : `data: ${JSON.stringify({ error: { ...told, param: null, code: null, request_id } })}\n\n`,
  );
}

export function heartbeat(style: Style): Buffer {
  return Buffer.from(style === 'messages' ? 'event: ping\ndata: {"type":"ping"}\n\n' : ': keep-alive\n\n');
}
