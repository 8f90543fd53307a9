/**
 * Facts about providers as other systems configure them. Sources: `hermes_cli/auth.py` of Hermes Agent, and `api.ts` of each
 * folder of `src/providers` of Portkey's gateway, read on 2026-11-27.
 */

/** Providers that Hermes signs in to by itself, with tokens that it renews. */
export const SIGNED_IN_BY_HERMES: ReadonlySet<string> = new Set(
  (
    'nous nous-portal openai-codex codex copilot github-copilot copilot-acp qwen-oauth xai-oauth grok-oauth ' +
    'minimax-oauth google-gemini-cli'
  ).split(' '),
);

/** Beginning of tokens that expire, which Hermes keeps beside keys, whatever it says of their kind. */
export const SIGN_IN_TOKEN_OF_HERMES = 'sk-ant-oat';

/** A field of a target of Portkey's that makes an address. */
interface AddressField {
  /** Id of the provider that has it. */
  readonly provider: string;
  readonly field: string;
  /** Address with `*` for the value. Null: the value is the address. */
  readonly address: string | null;
}

/** Fields that make addresses at Portkey, in the order in which they count. */
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

/** A way to sign in that does not last, as a target of Portkey's may have it. */
interface SignIn {
  readonly provider: string;
  /** Fields that mean it. Empty: the provider has no other way. */
  readonly fields: readonly string[];
  readonly message: string;
}

/** Ways to sign in at Portkey that no secret can stand for. */
export const PORTKEY_SIGN_INS: readonly SignIn[] = [
  {
    provider: 'vertex',
    fields: [],
    message:
      'Vertex AI takes tokens that expire after an hour, and a secret does not change. Callers can call it with their own tokens',
  },
  {
    provider: 'azure',
    fields: ['azure_auth_mode', 'azure_ad_token', 'azure_entra_client_id'],
    message: 'signs in with Entra ID, and members have keys. Set api_key to a key of the resource',
  },
];

/** Fields of clouds that say how a target signs in, or where it is. */
export const PORTKEY_CLOUD_FIELDS: readonly string[] = [
  ...PORTKEY_ADDRESSES.map(({ field }) => field),
  ...PORTKEY_SIGN_INS.flatMap(({ fields }) => fields),
  ...(
    'deployment_id azure_deployment_id azure_model_name azure_deployment_name deployments azure_entra_client_secret ' +
    'azure_entra_tenant_id aws_auth_type aws_access_key_id aws_secret_access_key aws_session_token aws_role_arn ' +
    'aws_external_id vertex_project_id vertex_region vertex_service_account_json'
  ).split(' '),
];
