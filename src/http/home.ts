import type { Context } from 'hono';
import type { Env } from '../env.ts';
import { wrongPlace } from '../runtime/deployment.ts';
import {
  howToSet,
  membersWithoutSecret,
  refusedSecrets,
  secretFault,
  whereIsAdminToken,
  withoutSecret,
} from '../runtime/secrets.ts';
import { isolateConfig } from '../config/isolate-config.ts';

/** Describes what this service is, how to use it, and what is missing from its set-up. */
export async function home(context: Context<{ Bindings: Env }>): Promise<Response> {
  const { env, executionCtx, req } = context;
  const wrong = wrongPlace(env);
  const table = wrong === null ? await isolateConfig.confirmed(env, executionCtx) : null;
  const origin = new URL(req.url).origin;
  const adminFault = secretFault(env, 'ADMIN_TOKEN');
  const groups = table?.snapshot.config.groups.length ?? 0;
  const keys = table?.snapshot.config.keys.length ?? 0;
  const missing = withoutSecret(env, table?.upstreams.values() ?? []);
  const ofMembers = membersWithoutSecret(env, table?.snapshot.config.groups ?? []);
  return context.text(
    [
      'Headgate limits concurrent LLM calls across all clients that share a key.',
      '',
      `Use it: set the base URL of your client, and ${keys === 0 ? 'keep your provider key' : 'send a gateway key, in the header headgate-key or as the API key'}.`,
      `  OpenAI      ${origin}/openai/v1`,
      `  Anthropic   ${origin}/anthropic`,
      `  Gemini      ${origin}/gemini`,
      `  any model   ${origin}/v1   with models such as openai/gpt-4o`,
      '',
      'Set up:',
      `  Directory      ${table === null ? (wrong ?? 'UNREACHABLE: calls may be rejected until it responds') : 'ready'}`,
      ...(table === null ? [] : [`  Configuration  version ${table.snapshot.version}`]),
      `  Admin routes   ${adminFault === null ? `open at ${origin}/admin/api with the ADMIN_TOKEN (${whereIsAdminToken(env, req.url)})` : `DISABLED: the secret ADMIN_TOKEN ${adminFault}. Set it: ${howToSet(env, 'ADMIN_TOKEN', req.url)}`}`,
      `  Dashboard      ${origin}/admin`,
      `  Groups         ${groups === 0 ? 'none configured: every provider key has an automatic group with its known or assumed limit' : `${groups} configured`}`,
      `  Gateway keys   ${keys === 0 ? 'none configured: callers bring their own provider keys' : `${keys} configured`}`,
      ...refusedSecrets(env).map(
        ({ secret, fault }) =>
          `  Secrets        UNUSABLE: the secret ${secret} ${fault}. Set it: ${howToSet(env, secret, req.url)}`,
      ),
      ...missing.map(
        ({ id, secret, fault }) =>
          `  Upstream keys  MISSING: the secret ${secret} ${fault}, so calls to ${id} are rejected. Set it: ${howToSet(env, secret, req.url)}`,
      ),
      ...ofMembers.map(
        ({ group, member, secret, fault }) =>
          `  Upstream keys  MISSING: the secret ${secret} ${fault}, so no calls of ${group} run at ${member}. Set it: ${howToSet(env, secret, req.url)}`,
      ),
      '',
    ].join('\n'),
  );
}
