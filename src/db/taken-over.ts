/**
 * The last version before the baseline: a database that lacks some of the migrations below has to go through it first.
 */
export const version_before = 'Medley 0.1.0 (commit 7689d1e)';

/** The migrations that the baseline replaces, in their order, with the SHA-256 of each file as it was applied. */
const checksums: { readonly [name: string]: string } = {
  '0001_money.sql': 'dadd91664961906cd42fcfba5550bc7cf0c11af1a664ee6a505e7fa1cb35f277',
  '0002_engine.sql': '23547e10f7291a05a0d8b347f9a200a8c2421005e527aca70505fb304b9d3144',
  '0003_tasks.sql': 'f9512c76228e6ccd8d44828191b0b53231a1ed28ce1c2e7abc211e642fa5f040',
  '0004_routing.sql': '18a6b0d471d1a6eb75adbf0c1ddbbffbd9377951ad0efacd3fe224f264160641',
  '0005_settings.sql': '28466eafd3b9248f6da4a9ae883a570b23288629ea6a92adc01cc880d29147f1',
  '0006_webhooks.sql': '8019143bb3558ffdc0d21882f2ae8be24c8f7f9253808bac3d9af1b88bf326dc',
  '0007_create_batch.sql': '58ba6a8f339aeffbe933dbf8177d702583120bf08a1ab43657361567642f25fc',
  '0008_chat.sql': '53b4e69eb483ff1e6b10753282e09a896e3a9887acb59c79b769e5ba3e71076e',
  '0010_embeddings_and_responses.sql': 'ef5bb5aeb22cdd412022f3a9eb83e6327a83c03dfcd8d2b2f5f9d36b2a1032b9',
  '0020_login.sql': '52c84bbeab46ba0c9eae11916d2072d872760a778482d6903c5fc55720b8a137',
  '0021_upstream_costs.sql': '110895ed93dc7a955229e8f9f8507975406ac013f77e755c62f1501b4a95a33e',
  '0025_billing.sql': '2c0a9e37ebd9ea035e46d84f143fc5c6f5340945a06871b3c78488340ff203bf',
  '0026_usage_sums.sql': '57c65bbc47243116ff6ccce646921682762e960069ae8cac8c1575951db0fd94',
  '0027_entries_by_time.sql': '2bbd13eb20413b68271fe3b6d8819c19f4977a304cd91a51df5f8314f41c9f96',
  '0028_invoices.sql': '3483ad10f2ca66bf4bc6a24513839e90992a07d004c2269a63ee5463748fe5df',
  '0030_files.sql': '4c2b564cbf16a1c6f6e82d05f6d8d9c1f63330de45c2579ab4f6ddd272cf1de9',
  '0031_deliveries_by_id.sql': '8d50b544aa10f719315553684ce7cbd83cf5bf5adf8d8befb66d706147e2147d',
  '0032_key_kinds.sql': 'a704e2ca83aee1dc3da897b814e4b3b3a26f0a6a48be765ef76be865966ca5ce',
  '0033_model_overrides.sql': '14d574b0f7dc9b428da9b4fadbeab40b6e818060d9227da1de1f340439e438ac',
  '0034_callers_version.sql': '1aa114bffff4dde2c6d804fcab4957d75917c72bf8f0ad11ff87f666e7f932e4',
  '0035_nodes.sql': '4d72fd7c9163efef9b13ab43438fd13cbd269501bd43b58fdc9d08ae91d501a8',
  '0036_chat_failures.sql': '93978eea4dcf33b8f6a30c752950b2b138cc9bb32b29eb20dc193a3b5ba56a4a',
  '0037_cheaper_money.sql': 'b7820eb3445aade11c4a9d3e15d3caed8e43fb5fd3d41f62f5542ebe9bc78255',
  '0038_chat_records.sql': '7ca2d6cb2bb5814542adc7365329510b1d8184ccea8470e1819e0897aa2b36a1',
  '0039_cheaper_sums.sql': 'e65172f67aa9955661384743c8adedd8fcc8f534ba52d3e24503dcb3b910d8d1',
  '0040_pledges.sql': 'dcc7c9553164ba9a99e73adb263d929fc3ae259737808654f244ca1b7fdc8c6a',
  '0041_void_links.sql': '35ba5c2f09cb363244ea0c3cb20f825c56b79fe4417bf80b949864fac22c7b42',
  '0042_test_places.sql': '8d85540ca31a56c2d55b2c47d7e32b6b7c5d7c85736246258cc0a75f841fd214',
  '0043_low_balance_notices.sql': '57a5d665b02039f783ea7d7eef194cf461e6da52211322d79433d9da79bba280',
  '0048_charges_within_limits.sql': '70b1656c5db54e727734b1f662cfc959cf86f942da5bab9063974f4108afde74',
  '0049_holds_of_live_nodes.sql': '3d5bf3bc0f11e26b982680707dd24d33467f8af2f43a2fc841f2ba4b2da33620',
  '0050_supplementary_invoices.sql': 'fa57efb55d9308a8bc12fc3508c0352bce68b8a3e4b73dce737bec2b012042c4',
  '0051_keys_share_a_budget.sql': '0efb16207d09fd601031cb6c42b91bdeacf10bdfc9b35472d0063b485b4a8067',
  '0056_email_claims.sql': '3c64542819f48eb63cf7f74badf8b8699e16fa25a9677e2522ff495f7b3801fc',
  '0064_circuits_of_accounts.sql': '133ccacc2c732b551f4b19ed222f2201830bc9000cef933a2f00fb4a9a26d98d',
  '0065_key_rules.sql': '2278dad91cca751a8df9afe8f333d9aa1395e046c7f109c8ae12833b62ae11db',
  '0066_caches_for_an_hour.sql': '7fdf4f1f0507b1d0c2be403bf534a7e47b1fe4f26d00de19cf1a9e5c49aee36c',
  '0067_delete_account.sql': '5ac63d43e230f36f6a8176f0f5af6d452ca515304b66fb337164cd4c15858710',
  '0070_proofs.sql': 'f6c9921819753322c6f7158c2b3a9b02d62acda7c5fa3ffa5d8c496931ebfc6a',
};

/** One migration that the baseline replaces. */
export type EarlierMigration = { number: number; name: string; checksum: string };

export const earlier_migrations: readonly EarlierMigration[] = Object.entries(checksums).map(([name, checksum]) => ({
  number: Number(name.slice(0, 4)),
  name,
  checksum,
}));
