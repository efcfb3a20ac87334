export { Host, type HostOptions, openHost } from './machine/host.ts'
export { fromLanguageModel, type LanguageModel } from './models/language-model.ts'
export { OPENAI_URL, type OpenAiCompatible, openAiCompatible } from './models/provider.ts'
