/** A program that waits for a key, as the person who typed its code sees it. */
export type DeviceLoginView = {
  /** Names of the program and its machine, as it sent them: anybody can send any name. */
  client: string;
  device: string;
  /** Its IP address. */
  address: string;
  /** It is where the person is, as far as the service can see. */
  is_same_address: boolean;
  created_at: string;
  expires_at: string;
  /** Scopes of its key; null: all. */
  scopes: ('chat' | 'media' | 'read')[] | null;
};
