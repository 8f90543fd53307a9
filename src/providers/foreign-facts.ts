/**
 * Facts about providers as other systems configure them. Sources: `hermes_cli/auth.py` of Hermes Agent, and `api.ts` of
 * each folder of `src/providers` of Portkey's gateway, read on 2026-11-27.
 */

/** Providers that Hermes signs in to automatically, with tokens that it renews. */
export const SIGNED_IN_BY_HERMES: ReadonlySet<string> = new Set(
  (
    'nous nous-portal openai-codex codex copilot github-copilot copilot-acp qwen-oauth xai-oauth grok-oauth ' +
    'minimax-oauth google-gemini-cli'
  ).split(' '),
);

/** Prefix of tokens that expire, which Hermes stores together with keys, whatever type it records for them. */
export const SIGN_IN_TOKEN_OF_HERMES = 'sk-ant-oat';

/** A field of a Portkey target that forms an address. */
interface AddressField {
  /** Id of the provider that uses it. */
  readonly provider: string;
  readonly field: string;
  /** Address with `*` for the value. null if the value is the address. */
  readonly address: string | null;
}

/** Fields that form addresses at Portkey, in order of precedence. */
export const PORTKEY_ADDRESSES: readonly AddressField[] = [
  { provider: 'azure', field: 'azure_foundry_url', address: null },
  { provider: 'azure', field: 'azure_resource_name', address: 'https://*.openai.azure.com' },
  { provider: 'azure', field: 'resource_name', address: 'https://*.openai.azure.com' },
  { provider: 'bedrock', field: 'aws_region', address: 'https://bedrock-runtime.*.amazonaws.com' },
  {
    provider: 'workers-ai',
    field: 'workers_ai_account_id',
    address: 'https://api.cloudflare.com/client/v4/accounts/*/ai/v1',
  },
  { provider: 'huggingface', field: 'huggingface_base_url', address: null },
];

/** A temporary way to sign in that a Portkey target may use. */
interface SignIn {
  readonly provider: string;
  /** Fields that indicate it. Empty if the provider has no other way to sign in. */
  readonly fields: readonly string[];
  readonly message: string;
}

/** Ways to sign in at Portkey that no secret can replace. */
export const PORTKEY_SIGN_INS: readonly SignIn[] = [
  {
    provider: 'vertex',
    fields: [],
    message:
      'Vertex AI accepts only tokens that expire after an hour, so a stored secret does not work. Let callers send their own tokens',
  },
  {
    provider: 'azure',
    fields: ['azure_auth_mode', 'azure_ad_token', 'azure_entra_client_id'],
    message:
      'signs in with Entra ID, but members need keys. Set `api_key` to a key of the resource',
  },
];

/** Fields of cloud providers for signing in and for the location of a target. */
export const PORTKEY_CLOUD_FIELDS: readonly string[] = [
  ...PORTKEY_ADDRESSES.map(({ field }) => field),
  ...PORTKEY_SIGN_INS.flatMap(({ fields }) => fields),
  ...(
    'deployment_id azure_deployment_id azure_model_name azure_deployment_name deployments azure_entra_client_secret ' +
    'azure_entra_tenant_id aws_auth_type aws_access_key_id aws_secret_access_key aws_session_token aws_role_arn ' +
    'aws_external_id vertex_project_id vertex_region vertex_service_account_json'
  ).split(' '),
];
