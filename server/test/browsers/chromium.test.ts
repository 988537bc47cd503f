import { chromium, startChromium } from './chromium.ts'
import { describeBrowser } from './suite.ts'

describeBrowser('Chromium', chromium, () => startChromium())
