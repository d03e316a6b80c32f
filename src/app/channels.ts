/** Channels between nodes besides the engine's. */
export const keys_channel = 'keys_changed';
export const reload_channel = 'reload';
export const reloaded_channel = 'reloaded';

/** A node's reply to `medley reload`, as base64url of its JSON. */
export type ReloadReply = { node: string; ok: boolean; message: string };
