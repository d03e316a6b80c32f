/** The answer to a call of the API: its JSON. */
export type ApiReply = { readonly status: number; readonly json: Record<string, unknown> };

/** A file of a task. */
export type ApiFile = { readonly bytes: Buffer; readonly content_type: string };

/** The calls of the API that tools make, in the name of one key and with all of its limits. */
export type Api = {
  models(query: Record<string, string>): Promise<ApiReply>;
  model(id: string): Promise<ApiReply>;
  estimate(body: object): Promise<ApiReply>;
  /** Waits for the end of the task, at most so long; whoever leaves cancels nothing. */
  generate(body: object, wait_s: number, signal: AbortSignal): Promise<ApiReply>;
  task(id: string): Promise<ApiReply>;
  tasks(query: Record<string, string>): Promise<ApiReply>;
  cancel(id: string): Promise<ApiReply>;
  /** Absent for a key that is limited to its project: the balance is about the whole account. */
  readonly balance?: () => Promise<ApiReply>;
  chat(body: object, signal: AbortSignal): Promise<ApiReply>;
  /** The files of a task that is final, without those that are larger. */
  files(task: Record<string, unknown>, bytes_max: number): Promise<ApiFile[]>;
};
