import type { Steering } from './provider.ts';

/** Gateways that are not providers but may be behind an upstream. Prefixes are without `x-`. */
export const GATEWAYS: readonly Steering[] = [
  {
    starts: ['helicone-'],
    source: 'https://docs.helicone.ai/helicone-headers/header-directory',
    date: '2026-11-20',
  },
  {
    starts: ['portkey-'],
    source: 'https://portkey.ai/docs/api-reference/inference-api/headers',
    date: '2026-11-20',
  },
  {
    starts: ['litellm-'],
    source: 'https://docs.litellm.ai/docs/proxy/request_headers',
    date: '2026-11-20',
  },
  {
    starts: ['cf-aig-'],
    source: 'https://developers.cloudflare.com/ai-gateway/configuration/',
    date: '2026-11-20',
  },
  { starts: ['requesty-'], source: 'https://docs.requesty.ai', date: '2026-11-20' },
  { starts: ['bt-'], source: 'https://www.braintrust.dev/docs/guides/proxy', date: '2026-11-20' },
  { starts: ['bf-'], source: 'https://docs.getbifrost.ai', date: '2026-11-20' },
  {
    starts: ['ai-eg-', 'envoy-'],
    source: 'https://aigateway.envoyproxy.io/docs/',
    date: '2026-11-20',
  },
  // Endpoint and model at Kubernetes inference gateways, and at AWS SageMaker behind a signing proxy.
  {
    starts: ['gateway-'],
    source: 'https://gateway-api-inference-extension.sigs.k8s.io/',
    date: '2026-11-26',
  },
  {
    starts: ['amzn-sagemaker-'],
    source:
      'https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_runtime_InvokeEndpoint.html',
    date: '2026-11-26',
  },
  { starts: ['higress-', 'mse-'], source: 'https://higress.ai/en/docs/', date: '2026-11-26' },
  {
    starts: ['aibrix-'],
    headers: ['routing-strategy', 'target-pod', 'external-filter'],
    source: 'https://aibrix.readthedocs.io/latest/features/gateway-plugins.html',
    date: '2026-11-26',
  },
  {
    starts: ['smg-', 'sglang-'],
    source: 'https://docs.sglang.ai/advanced_features/router.html',
    date: '2026-11-26',
  },
  { starts: ['tfy-'], source: 'https://docs.truefoundry.com/gateway', date: '2026-11-20' },
  { starts: ['kong-'], source: 'https://docs.konghq.com/gateway/latest/', date: '2026-11-20' },
  {
    starts: ['keywordsai-', 'data-keywordsai-'],
    source: 'https://docs.keywordsai.co',
    date: '2026-11-20',
  },
  {
    starts: ['ocp-apim-'],
    source: 'https://learn.microsoft.com/azure/api-management/api-management-subscriptions',
    date: '2026-11-20',
  },
  // Symfony, Zend and IIS route by these instead of the checked URL.
  {
    headers: [
      'x-original-url',
      'x-rewrite-url',
      'x-original-uri',
      'x-override-url',
      'x-host',
      'x-original-host',
      'x-http-host-override',
    ],
    source:
      'https://symfony.com/blog/cve-2018-14773-remove-support-for-legacy-and-risky-http-headers',
    date: '2026-11-20',
  },
  // The address that a gateway calls next.
  {
    headers: [
      'api-base',
      'base-url',
      'target-url',
      'x-api-base',
      'x-base-url',
      'x-target-url',
      'x-upstream-url',
    ],
    source: 'https://docs.litellm.ai/docs/proxy/request_headers',
    date: '2026-11-20',
  },
  {
    headers: ['azureml-model-deployment'],
    source:
      'https://learn.microsoft.com/azure/machine-learning/how-to-safely-rollout-online-endpoints',
    date: '2026-11-20',
  },
];
