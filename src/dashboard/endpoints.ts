import type { Endpoint } from '../http/endpoint.ts';
import type { App } from '../app.ts';
import { get_activity_csv, get_activity_jsonl, list_activity } from './activity.ts';
import { activity_events } from './activity-events.ts';
import {
  admin_account,
  admin_account_keys,
  admin_account_names,
  admin_accounts,
  admin_create_account,
  admin_delete_account,
  admin_credit,
  admin_forget_failures,
  admin_limit_key,
  admin_login_link,
  admin_set_status,
  admin_view,
} from './admin/accounts.ts';
import { admin_audit, admin_audit_csv, admin_audit_jsonl, get_audit, get_audit_csv, get_audit_jsonl } from './audit.ts';
import {
  admin_deliveries,
  admin_failures,
  admin_failures_file,
  admin_margins,
  admin_margins_file,
  admin_resend,
} from './admin/lists.ts';
import { admin_prices } from './admin/prices.ts';
import {
  admin_drain_route,
  admin_models,
  admin_order_routes,
  admin_reset_route,
  admin_switch_model,
} from './admin/models.ts';
import {
  admin_add_models,
  admin_change_added_model,
  admin_provider_offer,
  admin_remove_added_model,
} from './admin/provider-models.ts';
import { admin_add_document, admin_read_document } from './admin/provider-documents.ts';
import {
  admin_add_provider,
  admin_change_provider,
  admin_providers,
  admin_remove_provider,
} from './admin/providers.ts';
import { test_call_endpoints } from './admin/test-calls.ts';
import { admin_fail_task, admin_pause_node, admin_queue, admin_requeue } from './admin/queue.ts';
import { admin_alerts, admin_test_alerts } from './admin/alerts.ts';
import { admin_calls } from './admin/calls.ts';
import { admin_check, admin_configuration, admin_overview, admin_reload } from './admin/overview.ts';
import { get_alerts, set_alerts, test_alerts } from './alerts.ts';
import { get_balance } from './balance.ts';
import { get_billing, set_alert, set_details, top_up } from './billing.ts';
import { change_budget, create_budget, list_budgets, remove_budget } from './budgets.ts';
import { get_chat, list_chats } from './chats.ts';
import { get_choices, get_key_choices } from './choices.ts';
import { admin_open_content, content_accesses, delete_content, get_contents_jsonl, open_content } from './contents.ts';
import { conversation_endpoints } from './conversations.ts';
import { approve_device_login, deny_device_login, find_device_login } from './sign-in/device-login.ts';
import { set_feedback } from './feedback.ts';
import { get_home } from './home.ts';
import { accept_invitation, get_invitation } from './invitation.ts';
import { login_endpoints } from './sign-in/login.ts';
import { passkey_endpoints } from './passkeys.ts';
import { get_sign_in, list_sign_ins, unlink_sign_in } from './sign-in/sign-ins.ts';
import { change_key, create_key, delete_key, list_keys, rotate_key } from './keys.ts';
import { get_ledger_file, list_ledger } from './ledger.ts';
import { get_invoice_csv, get_invoice_json, get_invoice_pdf, list_invoices } from './invoices.ts';
import { set_language } from './language.ts';
import { get_me } from './me.ts';
import { cost_of_units } from './model-costs.ts';
import { list_model_speeds } from './model-speed.ts';
import { get_model, list_models, list_price_changes } from './models.ts';
import { chat_runs, estimate_run, generate_run, upload_for_run, whole_runs } from './playground.ts';
import { archive_project, create_project, list_projects, rename_project } from './projects.ts';
import { prompt_endpoints } from './prompts.ts';
import { list_views, remove_view, save_view } from './saved-views.ts';
import { admin_search, search_account } from './search.ts';
import { end_other_sessions, end_session, list_sessions } from './sign-in/sessions.ts';
import { cancel_task, get_task, get_task_file, list_tasks } from './tasks.ts';
import { stripe_webhook } from './stripe-webhook.ts';
import { admin_speed, get_speed } from './speed.ts';
import { get_status } from './status.ts';
import { get_spend_mail, set_spend_mail } from './spend-mail.ts';
import { get_refusals } from './refusals.ts';
import { get_usage, get_usage_charges, get_usage_table } from './usage.ts';
import {
  change_member,
  create_invitation,
  get_team,
  remove_member,
  rename_account,
  require_second_factor,
  withdraw_invitation,
} from './team.ts';
import { guideEndpoints } from './guide.ts';
import { webEndpoints } from './web.ts';
import {
  get_delivery,
  get_webhooks,
  list_deliveries,
  resend_delivery,
  reveal_secret,
  rotate_secret,
  send_test,
} from './webhooks.ts';
import {
  change_webhook_endpoint,
  create_webhook_endpoint,
  delete_webhook_endpoint,
  list_webhook_endpoints,
  replay_webhook_endpoint,
  rotate_webhook_endpoint,
  test_webhook_endpoint,
} from './webhook-endpoints.ts';

const endpoints: readonly Endpoint<App>[] = [
  ...login_endpoints,
  get_sign_in,
  get_me,
  set_language,
  get_invitation,
  accept_invitation,
  find_device_login,
  deny_device_login,
  approve_device_login,
  get_balance,
  get_home,
  get_choices,
  get_key_choices,
  search_account,
  list_activity,
  get_activity_csv,
  get_activity_jsonl,
  activity_events,
  list_views,
  save_view,
  remove_view,
  list_tasks,
  get_task,
  get_task_file,
  cancel_task,
  list_chats,
  get_chat,
  open_content,
  content_accesses,
  delete_content,
  get_contents_jsonl,
  admin_open_content,
  get_usage,
  get_refusals,
  get_speed,
  set_feedback,
  admin_speed,
  admin_calls,
  get_status,
  get_usage_table,
  get_spend_mail,
  set_spend_mail,
  get_usage_charges,
  get_alerts,
  set_alerts,
  test_alerts,
  list_ledger,
  get_ledger_file,
  get_billing,
  set_details,
  set_alert,
  top_up,
  stripe_webhook,
  list_models,
  get_model,
  list_model_speeds,
  list_price_changes,
  cost_of_units,
  estimate_run,
  generate_run,
  upload_for_run,
  ...chat_runs,
  ...whole_runs,
  ...prompt_endpoints,
  ...conversation_endpoints,
  list_invoices,
  get_invoice_pdf,
  get_invoice_csv,
  get_invoice_json,
  list_keys,
  create_key,
  change_key,
  rotate_key,
  delete_key,
  list_projects,
  create_project,
  rename_project,
  archive_project,
  list_budgets,
  create_budget,
  change_budget,
  remove_budget,
  admin_overview,
  admin_models,
  admin_switch_model,
  admin_order_routes,
  admin_drain_route,
  admin_reset_route,
  admin_providers,
  admin_add_provider,
  admin_change_provider,
  admin_remove_provider,
  admin_read_document,
  admin_add_document,
  admin_provider_offer,
  admin_add_models,
  admin_change_added_model,
  admin_remove_added_model,
  admin_failures,
  admin_failures_file,
  admin_queue,
  admin_pause_node,
  admin_requeue,
  admin_fail_task,
  admin_margins,
  admin_margins_file,
  admin_prices,
  admin_audit,
  admin_audit_csv,
  admin_audit_jsonl,
  get_audit,
  get_audit_csv,
  get_audit_jsonl,
  admin_deliveries,
  admin_resend,
  admin_alerts,
  admin_test_alerts,
  admin_configuration,
  admin_check,
  admin_reload,
  admin_search,
  admin_accounts,
  admin_account_names,
  admin_account,
  admin_account_keys,
  admin_create_account,
  admin_delete_account,
  admin_credit,
  admin_set_status,
  admin_limit_key,
  admin_forget_failures,
  admin_login_link,
  admin_view,
  get_webhooks,
  reveal_secret,
  rotate_secret,
  send_test,
  list_webhook_endpoints,
  create_webhook_endpoint,
  change_webhook_endpoint,
  delete_webhook_endpoint,
  rotate_webhook_endpoint,
  test_webhook_endpoint,
  replay_webhook_endpoint,
  list_deliveries,
  get_delivery,
  resend_delivery,
  list_sessions,
  list_sign_ins,
  unlink_sign_in,
  ...passkey_endpoints,
  end_session,
  end_other_sessions,
  get_team,
  rename_account,
  change_member,
  require_second_factor,
  remove_member,
  create_invitation,
  withdraw_invitation,
];

/** Every route of the dashboard in one list. */
export function dashboardEndpoints(): Endpoint<App>[] {
  return [...endpoints, ...test_call_endpoints, ...webEndpoints(), ...guideEndpoints()];
}
