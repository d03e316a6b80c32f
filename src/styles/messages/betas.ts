import { words } from '../fields.ts';

/** Betas that change how a model answers, at the price of its tokens. */
export const allowed_betas = words(`
  cache-diagnosis-2026-04-07 compact-2026-01-12 compact-2026-09-04 computer-use-2024-10-22 computer-use-2025-01-24
  computer-use-2025-11-24 context-management-2025-06-27 dev-full-thinking-2025-05-14 extended-cache-ttl-2025-04-11
  inline-tools-2026-09-15 interleaved-thinking-2025-05-14 mcp-client-2025-04-04 mcp-client-2025-11-20
  mcp-client-2026-09-15 mid-conversation-output-config-2026-07-01 mid-conversation-system-clear-at-2026-08-21
  mid-conversation-tool-changes-2026-07-01 model-context-window-exceeded-2025-08-26 output-128k-2025-02-19
  output-300k-2026-03-24 pdfs-2024-09-25 prompt-caching-2024-07-31 structured-outputs-2025-11-13
  task-budgets-2026-03-13 thinking-binding-controls-2026-08-01 thinking-display-updates-2026-08-18
  thinking-token-count-2026-05-13 token-counting-2024-11-01 token-efficient-tools-2025-02-19
  advanced-tool-use-2025-11-20 claude-code-20250219 effort-2025-11-24 fine-grained-tool-streaming-2025-05-14
  per-turn-control-2026-07-01
`);

/** Betas that the SDKs define and that go no further: they have prices of their own, or reach what an account keeps. */
export const withheld_betas = words(`
  admin-user-sign-out-2026-10-08 advisor-tool-2026-03-01 agent-memory-2026-07-22 analytics-usage-cost-2026-08-24
  ce-claude-code-managed-settings-2026-10-06 ce-plugins-2026-09-01 ce-user-management-2026-07-13
  code-execution-2025-05-22 context-1m-2025-08-07 dreaming-2026-04-21 experimental-claude-tag-2026-10-21
  fallback-credit-2026-06-01 fallback-credit-2026-07-01 fast-mode-2026-02-01 files-api-2025-04-14
  managed-agents-2026-04-01 mcp-tunnels-2026-06-22 message-batches-2024-09-24 message-threads-2026-08-12
  server-side-fallback-2026-06-01 server-side-fallback-2026-07-01 skills-2025-10-02 spend-limit-reads-2026-09-26
  telemetry-destinations-2026-08-11 user-profiles-2026-03-24 user-profiles-2026-08-18 user-profiles-2026-09-04
  user-profiles-billing-2026-10-01 webhooks-2026-10-07
`);
