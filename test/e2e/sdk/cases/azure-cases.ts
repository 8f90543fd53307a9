import { AzureOpenAI } from 'openai';
import { collect } from '../../support/comparable.ts';
import type { SdkCase, SdkRoute } from './sdk-case.ts';
import { CALLER_KEY, QUESTION } from './sdk-case.ts';

const messages = [{ role: 'user' as const, content: QUESTION }];

/** The SDK's Azure client on a route, its retries off. The deployment stands in the path. */
const azureClient = ({ baseUrl, headers }: SdkRoute): AzureOpenAI =>
  new AzureOpenAI({
    endpoint: baseUrl,
    deployment: 'prod-deployment-7',
    apiVersion: '2024-10-21',
    apiKey: CALLER_KEY,
    maxRetries: 0,
    ...(headers !== undefined && { defaultHeaders: headers }),
  });

/** Calls to a deployment of the classic Azure API. */
export const AZURE_CASES: readonly SdkCase[] = [
  {
    name: 'chat of a deployment',
    run: (route) =>
      azureClient(route).chat.completions.create({ model: 'prod-deployment-7', messages }),
  },
  {
    name: 'chat of a deployment, streamed',
    run: async (route) =>
      collect(
        await azureClient(route).chat.completions.create({
          model: 'prod-deployment-7',
          messages,
          stream: true,
        }),
      ),
  },
  {
    name: 'embeddings of a deployment',
    run: (route) =>
      azureClient(route).embeddings.create({ model: 'prod-deployment-7', input: QUESTION }),
  },
];
